"""English phrases for windows."""

from typing import assert_never

from penstock.engine.definition.phrases import format_duration, format_offset
from penstock.engine.plan import (
    AsOf,
    Between,
    Calendar,
    ChangelogWindows,
    CountPolicy,
    DeltaPolicy,
    Fixed,
    Global,
    PunctuationPolicy,
    SameWindows,
    Sessions,
    Sliding,
    SlidingOrder,
    StatefulFunction,
    TimePolicy,
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
