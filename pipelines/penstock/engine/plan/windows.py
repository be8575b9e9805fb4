"""Windows, as data: how records are assigned to windows.

All times are in milliseconds, and all windows are [start, end).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from penstock.engine.definition.argument_checks import (
    require,
    require_non_negative,
    require_one_of,
    require_positive,
    require_type,
)
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.join_windows import AsOf, Between
from penstock.engine.plan.policies import ClosePolicy, EvictionPolicy, TriggerPolicy
from penstock.engine.plan.stateful_function import StatefulFunction

MAX_WINDOWS_PER_RECORD = 100_000
"""The most windows of one record. A record is aggregated into each of its windows."""

NON_PORTABLE_ZONES = frozenset({"localtime", "posixrules", "Factory", "ROC"})
"""Time zone names that Java may not know. The first two differ between machines."""

_POLICY_HINT = "Give records(5), delta('speed', 3), elapsed('1 minute')"

TimeDomain: TypeAlias = Literal["event", "processing"]
CalendarUnit: TypeAlias = Literal["day", "week", "month"]


@dataclass(frozen=True)
class Fixed:
    """Fixed windows: [k * size + offset, (k + 1) * size + offset)."""

    size: int
    offset: int = 0
    time: TimeDomain = "event"

    def __post_init__(self) -> None:
        require_positive(self.size, "window.fixed.size")
        require_non_negative(self.offset, "window.fixed.offset")
        require(self.offset < self.size, "window.fixed.offset", self.offset, "Give less than the size")
        require_one_of(self.time, ("event", "processing"), "window.fixed.time")


@dataclass(frozen=True)
class Sliding:
    """Windows of one size that start every period. A record is in each window that covers its time.

    A period above the size leaves gaps. A record in a gap is in no window and counts as late with reason
    `no_window`.
    """

    size: int
    period: int
    offset: int = 0
    time: TimeDomain = "event"

    def __post_init__(self) -> None:
        require_positive(self.size, "window.sliding.size")
        require_positive(self.period, "window.sliding.period")
        require_non_negative(self.offset, "window.sliding.offset")
        require(self.offset < self.period, "window.sliding.offset", self.offset, "Give less than the period")
        require_one_of(self.time, ("event", "processing"), "window.sliding.time")
        problem = f"a record would lie in {-(-self.size // self.period)} windows"
        fix = f"Give a longer period or a shorter size: {MAX_WINDOWS_PER_RECORD} windows at most"
        require(self.size <= MAX_WINDOWS_PER_RECORD * self.period, "window.sliding.period", problem, fix)


@dataclass(frozen=True)
class Sessions:
    """Session windows: a record opens [t, t + gap), and overlapping or adjacent windows of a key are merged."""

    gap: int

    def __post_init__(self) -> None:
        require_positive(self.gap, "window.sessions.gap")


@dataclass(frozen=True)
class Calendar:
    """Days, weeks (from Monday) or months in a time zone. A day may have 23 or 25 hours."""

    unit: CalendarUnit
    zone: str = "UTC"

    def __post_init__(self) -> None:
        require_one_of(self.unit, ("day", "week", "month"), "window.calendar.unit")
        require(
            is_known_zone(self.zone), "window.calendar.zone", self.zone, "Name a zone as in Europe/Berlin"
        )


@dataclass(frozen=True)
class Global:
    """One window for all time: [-infinity, +infinity)."""


@dataclass(frozen=True)
class SameWindows:
    """The windows of the upstream panes, for a stage that needs no windows of its own."""


@dataclass(frozen=True)
class Tumbling:
    """An order window: a policy cuts the records of a key, in order, into windows. Each record is in one window.

    The windows of a key are numbered from 0. Each emits one pane when it closes. Its start and end are the minimum
    and the maximum event time (plus one) of its records.
    """

    close: ClosePolicy

    def __post_init__(self) -> None:
        require_type(
            self.close, ClosePolicy, "window.tumbling", f"{_POLICY_HINT} or punctuation(\"kind = 'end'\")"
        )


@dataclass(frozen=True)
class SlidingOrder:
    """An order window: the records of a key that remain after eviction, emitted by a trigger policy.

    A delta or time trigger is evaluated before a record is added, and emits the content before it. Then old records
    are evicted and the record is added. Then a count trigger is evaluated. Each pane is its own window, numbered
    from 0.
    """

    evict: EvictionPolicy
    trigger: TriggerPolicy

    def __post_init__(self) -> None:
        require_type(self.evict, EvictionPolicy, "window.sliding_by.evict", _POLICY_HINT)
        require_type(self.trigger, TriggerPolicy, "window.sliding_by.trigger", _POLICY_HINT)


TimeWindow: TypeAlias = Fixed | Sliding | Sessions | Calendar | Global | SameWindows
OrderWindow: TypeAlias = Tumbling | SlidingOrder
JoinWindow: TypeAlias = Between | AsOf
Window: TypeAlias = TimeWindow | OrderWindow | StatefulFunction | JoinWindow | ChangelogWindows


def is_record_ordered(window: Window) -> bool:
    """Return whether the records of a key are processed one by one, without partial aggregation."""
    return isinstance(window, OrderWindow | StatefulFunction | JoinWindow | ChangelogWindows)


def is_known_zone(name: str) -> bool:
    """Return whether the time zone exists, with the same meaning in Python and in Spark."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        return False
    return name not in NON_PORTABLE_ZONES and not name.startswith(("posix/", "right/"))


def is_processing_time(window: Window) -> bool:
    """Return whether the batch clock assigns records to the window."""
    match window:
        case Fixed(time=time) | Sliding(time=time):
            return time == "processing"
        case _:
            return False
