"""When: the trigger table of the contract, a class for each row that has no parts.

A machine belongs to one key and window. Once per batch it is told what came (`told`), asked (`readiness`), and
if the window fires, told that (`fired`, which answers whether it has finished).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from penstock.conformance.reference.input_records import Instant
from penstock.engine.plan.predicates import Predicate
from penstock.engine.plan.triggers import AfterProcessingTime, Every

TriggerT = TypeVar("TriggerT", bound="ReferenceTrigger")


class TriggerReadiness(IntEnum):
    """How ready: AT_END is ready because `after_watermark` is, which is what makes an on-time pane."""

    WAITING = 0
    READY = 1
    AT_END = 2


@dataclass(frozen=True)
class ReferenceTriggerContext:
    """The end of the window, and what time it is."""

    end: Instant
    watermark: Instant
    clock: Instant

    @property
    def is_past_end(self) -> bool:
        """Tell whether the watermark has passed the end."""
        return self.watermark >= self.end


@dataclass(frozen=True)
class ArrivalCounts:
    """What a batch brought to a window: how many elements, how many that match each predicate, and when."""

    elements: int
    matching: Mapping[Predicate, int]
    clock: int


@dataclass(frozen=True)
class MergedTrigger:
    """A machine of a window that is merged, and whether that window has elements that no pane has shown."""

    trigger: "ReferenceTrigger"
    has_pending: bool


class ReferenceTrigger(ABC):
    """A trigger at work."""

    @abstractmethod
    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Learn what came."""

    @abstractmethod
    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Tell whether it would fire. Without a firing or a merge it never becomes less ready again."""

    @abstractmethod
    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Learn that the window fired; answer whether this trigger has finished."""

    @abstractmethod
    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Become, from new, what the machines of merged windows add up to; `now.end` is the merged end."""


class ReferenceAfterWatermark(ReferenceTrigger):
    """`after_watermark`: ready from the end on."""

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Elements do not matter."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready when W >= end."""
        return TriggerReadiness.AT_END if context.is_past_end else TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """There is nothing to add up."""


class ReferenceAfterCount(ReferenceTrigger):
    """`after_count` and `after_punctuation`: so many elements, or matching elements, since it began."""

    def __init__(self, required_count: int, predicate: Predicate | None = None) -> None:
        self.required_count = required_count
        self.predicate = predicate
        self.count = 0

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Count the batch as a whole."""
        self.count += arrivals.elements if self.predicate is None else arrivals.matching[self.predicate]

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready when enough came."""
        return TriggerReadiness.READY if self.count >= self.required_count else TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish; nothing is carried over."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Counts add."""
        self.count = sum(trigger.count for trigger in triggers_of_type(ReferenceAfterCount, merged))


class ReferenceProcessingTimer(ReferenceTrigger):
    """`after_processing_time` and `every`: the first element since it began sets a timer on the clock."""

    def __init__(self, definition: AfterProcessingTime | Every) -> None:
        self.definition = definition
        self.due_at: int | None = None

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Set the timer, if there is none and something came."""
        if self.due_at is None and arrivals.elements > 0:
            self.due_at = self.compute_due_time(arrivals.clock)

    def compute_due_time(self, clock: int) -> int:
        """Return when a timer that is set now is due."""
        match self.definition:
            case AfterProcessingTime(delay):
                return clock + delay
            case Every(period, offset):
                return clock + period - (clock - offset) % period

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready when the clock has come to the timer."""
        return (
            TriggerReadiness.READY
            if self.due_at is not None and context.clock >= self.due_at
            else TriggerReadiness.WAITING
        )

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """The earliest timer that still has unshown elements stands."""
        pending_triggers = triggers_of_type(
            ReferenceProcessingTimer, [part for part in merged if part.has_pending]
        )
        self.due_at = min(
            (trigger.due_at for trigger in pending_triggers if trigger.due_at is not None), default=None
        )


class ReferenceNever(ReferenceTrigger):
    """What stands for an early trigger that was not declared."""

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Elements do not matter."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Never ready."""
        return TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Go on."""
        return False

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """There is nothing to add up."""


def triggers_of_type(trigger_type: type[TriggerT], merged: Iterable[MergedTrigger]) -> list[TriggerT]:
    """Return the machines of merged windows, which are all of one trigger and so of one kind."""
    return [part.trigger for part in merged if isinstance(part.trigger, trigger_type)]
