"""English phrases for windows and aggregates."""

from typing import assert_never

from penstock.engine.definition.phrases import format_duration, format_offset, join_phrases
from penstock.engine.plan import (
    Aggregate,
    AsOf,
    Between,
    Calendar,
    ChangelogWindows,
    Collect,
    Count,
    CountPolicy,
    Custom,
    DeltaPolicy,
    Distinct,
    First,
    Fixed,
    Global,
    JoinMembers,
    Last,
    Max,
    Mean,
    Min,
    OfInput,
    PunctuationPolicy,
    Quantiles,
    SameWindows,
    Sessions,
    Sliding,
    SlidingOrder,
    StatefulFunction,
    Sum,
    TimePolicy,
    TopN,
    Tumbling,
    Window,
    predicate_sql,
)

OrderPolicy = CountPolicy | DeltaPolicy | PunctuationPolicy | TimePolicy


def describe_window(plan_window: Window) -> str:
    """Describe a window."""
    match plan_window:
        case Fixed(size, offset, time):
            return (
                f"fixed windows of {format_duration(size)}{format_offset(offset)}{describe_time_domain(time)}"
            )
        case Sliding(size, period, offset, time):
            rhythm = f"{format_duration(period)}{format_offset(offset)}{describe_time_domain(time)}"
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
