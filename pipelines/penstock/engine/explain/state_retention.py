"""What a pipeline keeps between batches, and when it goes."""

from dataclasses import dataclass

from penstock.engine.explain import phrases
from penstock.engine.plan import (
    Aggregate,
    AsOf,
    Between,
    ChangelogWindows,
    Collect,
    CountPolicy,
    Custom,
    Distinct,
    First,
    JoinMembers,
    Last,
    OfInput,
    Plan,
    PlanSource,
    Quantiles,
    SlidingOrder,
    Stage,
    StatefulFunction,
    TopN,
    Tumbling,
    can_retract,
    is_processing_time,
)
from penstock.engine.plan.validation.pane_timing import has_unbounded_windows

NEVER_EXPIRES_NOTE = "a key's row with the number of its windows stays until the stream is dropped"
"""A key that comes again goes on counting its windows, however long it was silent."""


@dataclass(frozen=True)
class StateSummary:
    """Something that is kept, how much of it, and until when."""

    what: str
    size: str
    until: str


def summarize_state(plan: Plan) -> tuple[StateSummary, ...]:
    """Say all that is kept."""
    source_summaries = [summary for source in plan.sources for summary in summarize_source_state(source)]
    stateful_stages = (stage for stage in plan.stages if not is_stateless(stage))
    return (*source_summaries, *(summarize_stage_state(plan, stage) for stage in stateful_stages))


def is_stateless(stage: Stage) -> bool:
    """Tell whether a stage only hands on what comes."""
    return isinstance(stage.window, ChangelogWindows) or (
        isinstance(stage.window, StatefulFunction) and stage.window.is_pass_through
    )


def summarize_source_state(source: PlanSource) -> list[StateSummary]:
    """Say what is kept of an input."""
    watermark_summary = StateSummary(
        f"watermark of {source.name}", "two numbers per partition", "the stream is dropped"
    )
    if source.deduplication is None:
        return [watermark_summary]
    horizon = phrases.format_duration(source.deduplication.within)
    ids = phrases.join_phrases(list(source.deduplication.by))
    return [
        watermark_summary,
        StateSummary(
            f"ids of {source.name}",
            f"16 bytes for each different {ids}",
            f"they are {horizon} behind the watermark",
        ),
    ]


def summarize_stage_state(plan: Plan, stage: Stage) -> StateSummary:
    """Say what is kept of a stage's windows; over changes, what cannot be taken back is kept value by value."""
    match stage.window:
        case Tumbling(close):
            limit = f", at most {close.n} of them" if isinstance(close, CountPolicy) else ""
            contents = f"the records of one window per key{limit}, and how many windows it had"
            return StateSummary(f"open windows of {stage.name}", contents, f"it is cut; {NEVER_EXPIRES_NOTE}")
        case SlidingOrder(evict=evict):
            retained = phrases.describe_eviction_policy(evict)
            contents = f"per key {retained} of its records, and how many windows it had"
            return StateSummary(
                f"windows of {stage.name}", contents, f"they are evicted; {NEVER_EXPIRES_NOTE}"
            )
        case Between():
            until = "no partner can come any more"
            return StateSummary(
                f"records of {stage.name}", "their fields, and whether they met a partner", until
            )
        case AsOf(tolerance):
            watermark_condition = f"the watermark has passed them{phrases.format_delay(stage.lateness)}"
            until = f"{watermark_condition}, versions until there is a newer one that old"
            until += (
                f", or they are {phrases.format_duration(tolerance)} too old" if tolerance is not None else ""
            )
            return StateSummary(
                f"records of {stage.name}", "those that wait, and versions of each key", until
            )
        case StatefulFunction(state=state, forget_after=forget_after) as window:
            until = "its function forgets it"
            if forget_after is not None:
                until += (
                    f", or nothing was heard of it for {phrases.format_duration(forget_after)} of event time"
                )
            buffered_records = (
                ", and the records that the watermark has not passed" if window.is_event_time_ordered else ""
            )
            return StateSummary(
                f"keys of {stage.name}", f"per key a {state.name} and its timers{buffered_records}", until
            )
        case _:
            size = describe_window_size(stage, changes=bool(plan.upstream_of(stage)))
            return StateSummary(f"open windows of {stage.name}", size, describe_window_expiry(plan, stage))


def describe_window_size(stage: Stage, *, changes: bool) -> str:
    """Say how much is kept of each window of time."""
    columns = []
    for output in stage.aggregates:
        keeps_all_values = changes and not is_compact_over_changes(output.aggregate)
        contents = "all values" if keeps_all_values else describe_aggregate_size(output.aggregate)
        columns.append(f"{output.name} ({contents})")
    shown_copy = ", once more as last shown" if stage.accumulation == "retracting" else ""
    return f"per key and window: its trigger, {phrases.join_phrases(columns)}{shown_copy}"


def is_compact_over_changes(aggregate: Aggregate) -> bool:
    """Tell whether an aggregate over changes keeps what it keeps over records; a join has every record anyway."""
    return can_retract(aggregate) or isinstance(aggregate, JoinMembers)


def describe_aggregate_size(aggregate: Aggregate) -> str:
    """Say how much an aggregate keeps."""
    match aggregate:
        case Collect():
            return "all values"
        case Distinct(exact=True):
            return "every different value"
        case Distinct(precision=precision):
            return f"a sketch of {2**precision} registers"
        case Quantiles(k=k):
            return f"a sketch of about {k} values per level"
        case TopN(n=n):
            return "a record" if n == 1 else f"{n} records"
        case First() | Last():
            return "a value with its time and address"
        case Custom():
            return "its partial"
        case JoinMembers():
            return "every record, with the fields that rows take"
        case OfInput(aggregate=inner):
            return describe_aggregate_size(inner)
        case _:
            return "a few numbers"


def describe_window_expiry(plan: Plan, stage: Stage) -> str:
    """Say when a window of time goes."""
    if is_processing_time(stage.window):
        return "the batch clock passes its end"
    if has_unbounded_windows(plan, stage):
        return "the input ends"
    extra = f" plus {phrases.format_duration(stage.lateness)}" if stage.lateness else ""
    return f"the watermark passes its end{extra}"
