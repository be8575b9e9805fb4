"""English phrases for windows, triggers, aggregates and durations."""

from typing import assert_never

from penstock.engine.definition.phrases import format_duration, join_phrases
from penstock.engine.plan import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterPunctuation,
    AfterWatermark,
    Aggregate,
    AsOf,
    Between,
    Calendar,
    ChangelogWindows,
    Collect,
    Count,
    CountPolicy,
    Custom,
    Default,
    DeltaPolicy,
    Distinct,
    Every,
    First,
    Fixed,
    Global,
    JoinMembers,
    Last,
    Max,
    Mean,
    Min,
    OfInput,
    OrFinally,
    PunctuationPolicy,
    Quantiles,
    Repeatedly,
    SameWindows,
    Sessions,
    Sliding,
    SlidingOrder,
    StatefulFunction,
    Sum,
    TimePolicy,
    TopN,
    Trigger,
    Tumbling,
    Window,
    predicate_sql,
)

OrderPolicy = CountPolicy | DeltaPolicy | PunctuationPolicy | TimePolicy


def describe_window(plan_window: Window) -> str:
    """Describe a window."""
    match plan_window:
        case Fixed(size, offset, time):
            return f"fixed windows of {format_duration(size)}{describe_offset(offset)}{describe_time_domain(time)}"
        case Sliding(size, period, offset, time):
            rhythm = f"{format_duration(period)}{describe_offset(offset)}{describe_time_domain(time)}"
            return f"sliding windows of {format_duration(size)} that start every {rhythm}"
        case Sessions(gap):
            return f"sessions that end after {format_duration(gap)} without a record of the key"
        case Calendar(unit, zone):
            return f"calendar {unit}s in {zone}"
        case Global():
            return "one global window"
        case SameWindows():
            return "the windows of the stage that it reads"
        case Tumbling(close):
            return f"tumbling windows over a key's records in order, closed {describe_close_policy(close)}"
        case SlidingOrder(evict, trigger):
            retained = describe_eviction_policy(evict)
            firing = describe_trigger_policy(trigger)
            return f"a sliding window over a key's records in order, keeping {retained}, emitted {firing}"
        case Between(before, after):
            time_range = f"from {format_duration(before)} before to {format_duration(after)} after"
            return f"pairs whose right record is {time_range} the left record"
        case AsOf(tolerance, ends):
            tolerance_note = "" if tolerance is None else f", at most {format_duration(tolerance)} older"
            end_note = "" if ends is None else f", unless its {predicate_sql(ends)}"
            return (
                f"pairs of a left record and the latest right record as of its time{tolerance_note}{end_note}"
            )
        case StatefulFunction() if plan_window.is_pass_through:
            return "no windows: each record is a row of its own"
        case StatefulFunction(order="event_time"):
            return "no windows: a key's records in event-time order"
        case StatefulFunction():
            return "no windows: a key's records in arrival order"
        case ChangelogWindows():
            return "the windows of the panes that it reads"
        case _:
            assert_never(plan_window)


def describe_offset(offset: int) -> str:
    """Describe an offset, if there is one."""
    return f", shifted by {format_duration(offset)}" if offset else ""


def describe_time_domain(time: str) -> str:
    """Describe that windows are cut by the batch clock."""
    return " of processing time (the batch clock)" if time == "processing" else ""


def describe_close_policy(policy: OrderPolicy) -> str:
    """Describe when a tumbling window over ordered records closes."""
    match policy:
        case CountPolicy(n):
            return f"after every {n} records"
        case DeltaPolicy(field, by):
            return f"before a record whose {field} is more than {by:g} above the window's first"
        case PunctuationPolicy(predicate):
            return f"after a record with {predicate_sql(predicate)}"
        case TimePolicy(elapsed):
            return f"{format_duration(elapsed)} after its first record, on the batch clock"
        case _:
            assert_never(policy)


def describe_eviction_policy(policy: OrderPolicy) -> str:
    """Describe which records a sliding window over ordered records keeps."""
    match policy:
        case CountPolicy(n):
            return f"the last {n} records"
        case DeltaPolicy(field, by):
            return f"records whose {field} is at most {by:g} below the newest"
        case TimePolicy(elapsed):
            return f"records that arrived less than {format_duration(elapsed)} ago"
        case _:
            return describe_close_policy(policy)


def describe_trigger_policy(policy: OrderPolicy) -> str:
    """Describe when a sliding window over ordered records is emitted."""
    match policy:
        case CountPolicy(n):
            return f"after every {n} records"
        case DeltaPolicy(field, by):
            return f"whenever {field} has risen by more than {by:g}"
        case TimePolicy(elapsed):
            return f"{format_duration(elapsed)} after the first record that is not yet emitted"
        case _:
            return describe_close_policy(policy)


def describe_trigger(plan_trigger: Trigger) -> str:
    """Describe when a trigger fires."""
    match plan_trigger:
        case Default():
            return "when the watermark passes the end of the window, then with each batch of late records"
        case AfterWatermark(None, None):
            return "once, when the watermark passes the end of the window"
        case AfterWatermark(early, late):
            return describe_around_end(early, late)
        case AfterCount(n):
            return "when a record arrives" if n == 1 else f"when {n} records have arrived"
        case AfterProcessingTime(delay):
            return f"{format_duration(delay)} after the first record, on the batch clock"
        case Every(period, offset):
            rhythm = f"every {format_duration(period)} on the batch clock{describe_offset(offset)}"
            return f"{rhythm}, if new records have arrived"
        case AfterPunctuation(predicate):
            return f"when a record with {predicate_sql(predicate)} arrives"
        case AfterAny(inner):
            return "when the first of these is ready: " + "; ".join(describe_trigger(part) for part in inner)
        case AfterAll(inner):
            return "when all of these are ready: " + "; ".join(describe_trigger(part) for part in inner)
        case AfterEach(inner):
            return "first " + "; then ".join(describe_trigger(part) for part in inner)
        case OrFinally(inner, until):
            return f"{describe_trigger(inner)}; and a last time {describe_trigger(until)}"
        case Repeatedly(AfterCount(n)):
            return "whenever a record arrives" if n == 1 else f"whenever {n} more records have arrived"
        case Repeatedly(inner):
            return f"repeatedly {describe_trigger(inner)}"
        case _:
            assert_never(plan_trigger)


def describe_around_end(early: Trigger | None, late: Trigger | None) -> str:
    """Describe early, on-time and late panes."""
    late_firing = describe_trigger(late) if late else "with each batch of late records"
    return f"{describe_until_end(early)}; late panes {late_firing}"


def describe_until_end(early: Trigger | None) -> str:
    """Describe early and on-time panes."""
    on_time = "on-time pane when the watermark passes the end of the window"
    return on_time if early is None else f"early panes {describe_trigger(early)}; {on_time}"


def describe_aggregate(plan_aggregate: Aggregate, *, panes: bool = False) -> str:
    """Describe a result column. Over panes all values are kept, so no aggregate is approximate."""
    match plan_aggregate:
        case Count(None):
            return "number of records"
        case Count(field):
            return f"number of records with a {field}"
        case Sum(field):
            return f"sum of {field}"
        case Mean(field):
            return f"mean of {field}"
        case Min(field):
            return f"minimum of {field}"
        case Max(field):
            return f"maximum of {field}"
        case First(field, order):
            return f"first {field} by {order.replace('_', ' ')}"
        case Last(field, order):
            return f"last {field} by {order.replace('_', ' ')}"
        case Distinct(field, exact):
            return f"number of distinct {field}" + ("" if exact or panes else ", approximate (HyperLogLog)")
        case TopN(field, n, by, largest):
            record_phrase = "record" if n == 1 else f"{n} records"
            return f"{field} of the {record_phrase} with the {'largest' if largest else 'smallest'} {by or field}"
        case Quantiles(field, ranks):
            approximation_note = "" if panes else ", approximate (KLL)"
            kind = "quantile" if len(ranks) == 1 else "quantiles"
            return f"{kind} {join_phrases([f'{rank:g}' for rank in ranks])} of {field}{approximation_note}"
        case Collect(field):
            return f"list of all {field}"
        case Custom(fields, combiner):
            return f"{combiner.name} of {join_phrases(list(fields))}"
        case JoinMembers(input_, fields):
            return (
                f"{join_phrases(list(fields))} of every record of {input_}"
                if fields
                else f"records of {input_}"
            )
        case OfInput(input_, inner):
            return f"{describe_aggregate(inner, panes=panes)} of {input_} only"
        case _:
            assert_never(plan_aggregate)
