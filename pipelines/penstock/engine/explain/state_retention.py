"""The state that a pipeline keeps between batches, and when it expires."""

from dataclasses import dataclass

from penstock.engine.definition.phrases import format_delay, format_duration, join_phrases
from penstock.engine.explain import phrases
from penstock.engine.plan import (
    AsOf,
    Between,
    ChangelogWindows,
    CountPolicy,
    Plan,
    PlanSource,
    SlidingOrder,
    Stage,
    StatefulFunction,
    Tumbling,
    is_processing_time,
)
from penstock.engine.plan.validation.pane_timing import has_unbounded_windows

NEVER_EXPIRES_NOTE = "the window counter of each key is kept until the stream is dropped"
"""A key that returns continues its window numbers, however long it was silent."""


@dataclass(frozen=True)
class StateSummary:
    """An item of state: its size, and the condition until which it is kept."""

    item: str
    size: str
    until: str


def summarize_state(plan: Plan) -> tuple[StateSummary, ...]:
    """Summarize the state of all sources and stages."""
    source_summaries = [summary for source in plan.sources for summary in summarize_source_state(source)]
    stateful_stages = (stage for stage in plan.stages if not is_stateless(stage))
    return (*source_summaries, *(summarize_stage_state(plan, stage) for stage in stateful_stages))


def is_stateless(stage: Stage) -> bool:
    """Return whether a stage keeps no state of its own."""
    return isinstance(stage.window, ChangelogWindows) or (
        isinstance(stage.window, StatefulFunction) and stage.window.is_pass_through
    )


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
    match stage.window:
        case Tumbling(close):
            limit = f", at most {close.n} of them" if isinstance(close, CountPolicy) else ""
            contents = f"per key, the records of the open window{limit}, and a window counter"
            return StateSummary(
                f"open windows of {stage.name}", contents, f"the window closes; {NEVER_EXPIRES_NOTE}"
            )
        case SlidingOrder(evict=evict):
            retained = phrases.describe_eviction_policy(evict)
            contents = f"per key, {retained}, and a window counter"
            return StateSummary(
                f"windows of {stage.name}", contents, f"they are evicted; {NEVER_EXPIRES_NOTE}"
            )
        case Between():
            until = "no matching record can arrive any more"
            return StateSummary(
                f"records of {stage.name}", "their fields, and whether they have matched", until
            )
        case AsOf(tolerance):
            watermark_condition = f"the watermark has passed them{format_delay(stage.lateness)}"
            until = f"{watermark_condition}; a version until a newer one is behind the watermark"
            until += (
                f" or it is older than the tolerance of {format_duration(tolerance)}"
                if tolerance is not None
                else ""
            )
            return StateSummary(
                f"records of {stage.name}",
                "left records that wait for the watermark, and versions of each key",
                until,
            )
        case StatefulFunction(state=state, forget_after=forget_after) as window:
            until = "its function deletes its state"
            if forget_after is not None:
                until += f", or it has no record for {format_duration(forget_after)} of event time"
            buffered_records = (
                ", and the records ahead of the watermark" if window.is_event_time_ordered else ""
            )
            return StateSummary(
                f"keys of {stage.name}", f"per key, a {state.name} and its timers{buffered_records}", until
            )
        case _:
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
    if is_processing_time(stage.window):
        return "the batch clock passes the end of the window"
    if has_unbounded_windows(plan, stage):
        return "the input ends"
    extra = f" plus {format_duration(stage.lateness)}" if stage.lateness else ""
    return f"the watermark passes the end of the window{extra}"
