"""Where in event time: how a record is assigned to windows.

All times are milliseconds, all windows [start, end).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.join_windows import AsOf, Between
from penstock.engine.plan.policies import ClosePolicy, EvictionPolicy, TriggerPolicy
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.validation.argument_checks import (
    require,
    require_non_negative,
    require_one_of,
    require_positive,
    require_type,
)

MAX_WINDOWS_PER_RECORD = 100_000
"""Windows that a record may lie in: it is folded into each of them, and a batch into as many for each record."""

NON_PORTABLE_ZONES = frozenset({"localtime", "posixrules", "Factory", "ROC"})
"""Names that this machine's files may know and Java does not; the first two mean another zone on each machine."""

_POLICY_HINT = "Give records(5), delta('speed', 3), elapsed('1 minute')"

TimeDomain: TypeAlias = Literal["event", "processing"]
CalendarUnit: TypeAlias = Literal["day", "week", "month"]


@dataclass(frozen=True)
class Fixed:
    """Windows of one size, side by side: [k * size + offset, (k + 1) * size + offset)."""

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
    """Windows of one size that start every period: a record is in each of them that covers its time.

    A period above the size leaves gaps; a record in a gap is in no window, and is accounted for as late with
    reason `no_window`.
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
    """A record opens [t, t + gap); windows of one key that overlap or touch become one."""

    gap: int

    def __post_init__(self) -> None:
        require_positive(self.gap, "window.sessions.gap")


@dataclass(frozen=True)
class Calendar:
    """Days, weeks (from Monday) or months of a time zone: a day may have 23 or 25 hours."""

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
    """The windows of the panes that are read: what a stage over another one may group by in place of new ones."""


@dataclass(frozen=True)
class Tumbling:
    """Order window: a key's records in their order, cut by a policy; each is in exactly one window.

    Windows of a key are numbered from 0; each shows one pane, when it closes; start and end are the least and
    the greatest event time in it (plus one).
    """

    close: ClosePolicy

    def __post_init__(self) -> None:
        require_type(
            self.close, ClosePolicy, "window.tumbling", f"{_POLICY_HINT} or punctuation(\"kind = 'end'\")"
        )


@dataclass(frozen=True)
class SlidingOrder:
    """Order window: what a key holds after eviction, shown when the trigger policy says so.

    A delta or time trigger is judged before a record (and shows what was held before it); then the record
    evicts and comes in; then a count trigger is judged. Each showing is a window of its own, numbered from 0.
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
    """Tell whether a key's records are taken one by one, and not added up before."""
    return isinstance(window, OrderWindow | StatefulFunction | JoinWindow | ChangelogWindows)


def is_known_zone(name: str) -> bool:
    """Tell whether the time zone is known here, by a name that means the same in Spark."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        return False
    return name not in NON_PORTABLE_ZONES and not name.startswith(("posix/", "right/"))


def is_processing_time(window: Window) -> bool:
    """Tell whether the window is cut by the batch clock."""
    match window:
        case Fixed(time=time) | Sliding(time=time):
            return time == "processing"
        case _:
            return False
