"""Windows of the public API."""

from typing import cast

from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
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


@keyword("fixed")
def fixed(size: Duration, offset: Duration = 0, time: str = "event") -> Fixed:
    """Assign records to fixed windows of event time, or of the batch clock with `time="processing"`."""
    size_ms = to_milliseconds(size, "window.fixed.size")
    return Fixed(size_ms, to_milliseconds(offset, "window.fixed.offset"), cast("TimeDomain", time))


@keyword("sliding")
def sliding(size: Duration, period: Duration, offset: Duration = 0, time: str = "event") -> Sliding:
    """Assign records to windows of this size that start every period."""
    size_ms = to_milliseconds(size, "window.sliding.size")
    period_ms = to_milliseconds(period, "window.sliding.period")
    return Sliding(
        size_ms, period_ms, to_milliseconds(offset, "window.sliding.offset"), cast("TimeDomain", time)
    )


@keyword("sessions")
def sessions(gap: Duration) -> Sessions:
    """Group the records of a key into sessions, which end after a gap without records."""
    return Sessions(to_milliseconds(gap, "window.sessions.gap"))


@keyword("calendar")
def calendar(unit: str, zone: str = "UTC") -> Calendar:
    """Assign records to days, weeks (from Monday) or months of a time zone."""
    return Calendar(cast("CalendarUnit", unit), zone)


@keyword("global")
def global_window() -> Global:
    """Assign all records to one window that never ends."""
    return Global()


@keyword("same")
def same_windows() -> SameWindows:
    """Reuse the windows of the upstream stage, which is the default of a downstream stage."""
    return SameWindows()


@keyword("between")
def between(before: Duration, after: Duration) -> Between:
    """Join a left record with right records from `before` earlier to `after` later (an interval join)."""
    bounds_ms = (
        to_milliseconds(before, "window.between.before"),
        to_milliseconds(after, "window.between.after"),
    )
    return Between(*bounds_ms)


@keyword("as_of")
def as_of(tolerance: Duration | None = None, ends: str | None = None) -> AsOf:
    """Join each left record with the latest right record at or before its time (an as-of join).

    A right record that is older than `tolerance` does not match. `ends` is a condition such as "deleted = true": a
    right record that meets it matches nothing and ends the version before it.
    """
    tolerance_ms = None if tolerance is None else to_milliseconds(tolerance, "window.as_of.tolerance")
    return AsOf(tolerance_ms, None if ends is None else parse_condition(ends, "window.as_of.ends"))


@keyword("tumbling")
def tumbling(by: ClosePolicy) -> Tumbling:
    """Cut the records of a key, in order, into windows by a policy."""
    return Tumbling(by)


@keyword("sliding_by")
def sliding_by(evict: EvictionPolicy, trigger: TriggerPolicy) -> SlidingOrder:
    """Keep the newest records of a key by an eviction policy, and emit them by a trigger policy."""
    return SlidingOrder(evict, trigger)


@keyword("records")
def records(n: int) -> CountPolicy:
    """A policy by number of records."""
    return CountPolicy(n)


@keyword("delta")
def delta(field: str, by: float) -> DeltaPolicy:
    """A policy by the increase of a field."""
    return DeltaPolicy(field, by)


@keyword("punctuation")
def punctuation(predicate: str) -> PunctuationPolicy:
    """A policy by records that match a condition, as in `punctuation("kind = 'end'")`."""
    return PunctuationPolicy(parse_condition(predicate, "window.punctuation"))


@keyword("elapsed")
def elapsed(duration: Duration) -> TimePolicy:
    """A policy by time on the batch clock."""
    return TimePolicy(to_milliseconds(duration, "window.elapsed"))
