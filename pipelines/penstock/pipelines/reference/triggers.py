"""When: the trigger table of the contract, a class for each row that has no parts.

A machine belongs to one key and window. Once per batch it is told what came (`told`), asked (`readiness`), and
if the window fires, told that (`fired`, which answers whether it has finished).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from penstock.pipelines.plan.predicates import Predicate
from penstock.pipelines.plan.triggers import AfterProcessingTime, Every
from penstock.pipelines.reference.records import Instant

M = TypeVar("M", bound="Machine")


class Readiness(IntEnum):
    """How ready: AT_END is ready because `after_watermark` is, which is what makes an on-time pane."""

    WAITING = 0
    READY = 1
    AT_END = 2


@dataclass(frozen=True)
class Now:
    """The end of the window, and what time it is."""

    end: Instant
    watermark: Instant
    clock: Instant

    @property
    def ended(self) -> bool:
        """Tell whether the watermark has passed the end."""
        return self.watermark >= self.end


@dataclass(frozen=True)
class Came:
    """What a batch brought to a window: how many elements, how many that match each predicate, and when."""

    elements: int
    matching: Mapping[Predicate, int]
    clock: int


@dataclass(frozen=True)
class Part:
    """A machine of a window that is merged, and whether that window has elements that no pane has shown."""

    machine: "Machine"
    unshown: bool


class Machine(ABC):
    """A trigger at work."""

    @abstractmethod
    def told(self, came: Came) -> None:
        """Learn what came."""

    @abstractmethod
    def readiness(self, now: Now) -> Readiness:
        """Tell whether it would fire. Without a firing or a merge it never becomes less ready again."""

    @abstractmethod
    def fired(self, now: Now) -> bool:
        """Learn that the window fired; answer whether this trigger has finished."""

    @abstractmethod
    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """Become, from new, what the machines of merged windows add up to; `now.end` is the merged end."""


class PastEnd(Machine):
    """`after_watermark`: ready from the end on."""

    def told(self, came: Came) -> None:
        """Elements do not matter."""

    def readiness(self, now: Now) -> Readiness:
        """Ready when W >= end."""
        return Readiness.AT_END if now.ended else Readiness.WAITING

    def fired(self, now: Now) -> bool:
        """Finish."""
        return True

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """There is nothing to add up."""


class Counting(Machine):
    """`after_count` and `after_punctuation`: so many elements, or matching elements, since it began."""

    def __init__(self, enough: int, predicate: Predicate | None = None) -> None:
        self.enough = enough
        self.predicate = predicate
        self.seen = 0

    def told(self, came: Came) -> None:
        """Count the batch as a whole."""
        self.seen += came.elements if self.predicate is None else came.matching[self.predicate]

    def readiness(self, now: Now) -> Readiness:
        """Ready when enough came."""
        return Readiness.READY if self.seen >= self.enough else Readiness.WAITING

    def fired(self, now: Now) -> bool:
        """Finish; nothing is carried over."""
        return True

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """Counts add."""
        self.seen = sum(machine.seen for machine in of_kind(Counting, parts))


class Timing(Machine):
    """`after_processing_time` and `every`: the first element since it began sets a timer on the clock."""

    def __init__(self, trigger: AfterProcessingTime | Every) -> None:
        self.trigger = trigger
        self.due: int | None = None

    def told(self, came: Came) -> None:
        """Set the timer, if there is none and something came."""
        if self.due is None and came.elements > 0:
            self.due = self.set_at(came.clock)

    def set_at(self, clock: int) -> int:
        """Return when a timer that is set now is due."""
        match self.trigger:
            case AfterProcessingTime(delay):
                return clock + delay
            case Every(period, offset):
                return clock + period - (clock - offset) % period

    def readiness(self, now: Now) -> Readiness:
        """Ready when the clock has come to the timer."""
        return Readiness.READY if self.due is not None and now.clock >= self.due else Readiness.WAITING

    def fired(self, now: Now) -> bool:
        """Finish."""
        return True

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """The earliest timer that still has unshown elements stands."""
        waiting = of_kind(Timing, [part for part in parts if part.unshown])
        self.due = min((machine.due for machine in waiting if machine.due is not None), default=None)


class Never(Machine):
    """What stands for an early trigger that was not declared."""

    def told(self, came: Came) -> None:
        """Elements do not matter."""

    def readiness(self, now: Now) -> Readiness:
        """Never ready."""
        return Readiness.WAITING

    def fired(self, now: Now) -> bool:
        """Go on."""
        return False

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """There is nothing to add up."""


def of_kind(kind: type[M], parts: Iterable[Part]) -> list[M]:
    """Return the machines of merged windows, which are all of one trigger and so of one kind."""
    return [part.machine for part in parts if isinstance(part.machine, kind)]
