"""The state that a pipeline keeps between batches, and when it expires."""

from dataclasses import dataclass

from penstock.engine.definition.phrases import format_duration, join_phrases
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.pane_timing import has_unbounded_windows


@dataclass(frozen=True)
class StateSummary:
    """An item of state: its size, and the condition until which it is kept."""

    item: str
    size: str
    until: str


def summarize_state(plan: Plan) -> tuple[StateSummary, ...]:
    """Summarize the state of all sources and stages."""
    source_summaries = [summary for source in plan.sources for summary in summarize_source_state(source)]
    stateful_stages = (stage for stage in plan.stages if stage.window.keeps_state)
    return (*source_summaries, *(summarize_stage_state(plan, stage) for stage in stateful_stages))


def summarize_source_state(source: PlanSource) -> list[StateSummary]:
    """Summarize the state of a source: its watermark and the ids that it has seen."""
    watermark_summary = StateSummary(
        f"watermark of {source.name}", "two numbers per partition", "the stream is dropped"
    )
    if source.deduplication is None:
        return [watermark_summary]
    retention = format_duration(source.deduplication.within)
    ids = join_phrases(list(source.deduplication.by))
    return [
        watermark_summary,
        StateSummary(
            f"ids of {source.name}",
            f"16 bytes for each distinct {ids}",
            f"the watermark is {retention} past them",
        ),
    ]


def summarize_stage_state(plan: Plan, stage: Stage) -> StateSummary:
    """Summarize the state of a stage.

    Over changes, an aggregate that cannot subtract keeps all its values.
    """
    retention = stage.window.describe_state(stage.lateness)
    if retention is not None:
        return StateSummary(f"{retention.items} of {stage.name}", retention.contents, retention.until)
    size = describe_window_size(stage, changes=bool(plan.upstream_of(stage)))
    return StateSummary(f"open windows of {stage.name}", size, describe_window_expiry(plan, stage))


def describe_window_size(stage: Stage, *, changes: bool) -> str:
    """Describe the state of each window."""
    columns = []
    for output in stage.aggregates:
        keeps_all_values = changes and not output.aggregate.can_retract
        contents = "all values" if keeps_all_values else output.aggregate.describe_state()
        columns.append(f"{output.name} ({contents})")
    shown_copy = "; and the last emitted values" if stage.accumulation == "retracting" else ""
    return f"per key and window: trigger state, {join_phrases(columns)}{shown_copy}"


def describe_window_expiry(plan: Plan, stage: Stage) -> str:
    """Describe when a window expires."""
    if stage.window.uses_processing_time:
        return "the batch clock passes the end of the window"
    if has_unbounded_windows(plan, stage):
        return "the input ends"
    extra = f" plus {format_duration(stage.lateness)}" if stage.lateness else ""
    return f"the watermark passes the end of the window{extra}"
