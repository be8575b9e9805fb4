"""Where: windows in the words of a person."""

from typing import cast

from penstock.engine.plan.join_windows import AsOf, Between
from penstock.engine.plan.policies import (
    ClosePolicy,
    CountPolicy,
    DeltaPolicy,
    EvictionPolicy,
    PunctuationPolicy,
    TimePolicy,
    TriggerPolicy,
)
from penstock.engine.plan.windows import (
    Calendar,
    CalendarUnit,
    Fixed,
    Global,
    SameWindows,
    Sessions,
    Sliding,
    SlidingOrder,
    TimeDomain,
    Tumbling,
)
from penstock.stream.condition_parser import parse_condition
from penstock.stream.durations import Duration, to_milliseconds


def fixed(size: Duration, offset: Duration = 0, time: str = "event") -> Fixed:
    """Cut time into windows of one size; `time="processing"` cuts the batch clock instead."""
    size_ms = to_milliseconds(size, "window.fixed.size")
    return Fixed(size_ms, to_milliseconds(offset, "window.fixed.offset"), cast("TimeDomain", time))


def sliding(size: Duration, period: Duration, offset: Duration = 0, time: str = "event") -> Sliding:
    """Begin a window of this size every period."""
    size_ms = to_milliseconds(size, "window.sliding.size")
    period_ms = to_milliseconds(period, "window.sliding.period")
    return Sliding(
        size_ms, period_ms, to_milliseconds(offset, "window.sliding.offset"), cast("TimeDomain", time)
    )


def sessions(gap: Duration) -> Sessions:
    """Join a key's records into one window while no gap as long as this separates them."""
    return Sessions(to_milliseconds(gap, "window.sessions.gap"))


def calendar(unit: str, zone: str = "UTC") -> Calendar:
    """Cut time into days, weeks (from Monday) or months as a time zone has them."""
    return Calendar(cast("CalendarUnit", unit), zone)


def global_window() -> Global:
    """Keep everything in one window."""
    return Global()


def same_windows() -> SameWindows:
    """Go on in the windows of the stage that is read, which is what a later stage does unless it says otherwise."""
    return SameWindows()


def between(before: Duration, after: Duration) -> Between:
    """Join what lies near: the right record from `before` earlier to `after` later than the left one."""
    bounds_ms = (
        to_milliseconds(before, "window.between.before"),
        to_milliseconds(after, "window.between.after"),
    )
    return Between(*bounds_ms)


def as_of(tolerance: Duration | None = None, ends: str | None = None) -> AsOf:
    """Join each record of the left input with the newest of the right that is no younger.

    `ends` is a condition, as in "deleted = true": from a right record that meets it on there is none, until a
    newer one comes.
    """
    tolerance_ms = None if tolerance is None else to_milliseconds(tolerance, "window.as_of.tolerance")
    return AsOf(tolerance_ms, None if ends is None else parse_condition(ends, "window.as_of.ends"))


def tumbling(by: ClosePolicy) -> Tumbling:
    """Cut a key's records, in their order, where the policy says so."""
    return Tumbling(by)


def sliding_by(evict: EvictionPolicy, trigger: TriggerPolicy) -> SlidingOrder:
    """Keep a key's newest records by one policy, and show them by another."""
    return SlidingOrder(evict, trigger)


def records(n: int) -> CountPolicy:
    """Go by a number of records."""
    return CountPolicy(n)


def delta(field: str, by: float) -> DeltaPolicy:
    """Go by how far a field has risen."""
    return DeltaPolicy(field, by)


def punctuation(predicate: str) -> PunctuationPolicy:
    """Go by records that match a condition, as in `punctuation("kind = 'end'")`."""
    return PunctuationPolicy(parse_condition(predicate, "window.punctuation"))


def elapsed(duration: Duration) -> TimePolicy:
    """Go by time on the batch clock."""
    return TimePolicy(to_milliseconds(duration, "window.elapsed"))
