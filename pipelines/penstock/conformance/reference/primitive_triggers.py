"""The triggers without parts, one class per trigger.

A trigger instance belongs to one key and window. Once per batch, it is notified of new elements (`on_elements`)
and evaluated (`check_readiness`). If the window fires, `on_fire` returns whether the trigger has finished.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from penstock.conformance.reference.input_records import Instant
from penstock.engine.definition.predicates import Predicate
from penstock.engine.plan.triggers import AfterProcessingTime, Every

TriggerT = TypeVar("TriggerT", bound="ReferenceTrigger")


class TriggerReadiness(IntEnum):
    """The readiness. AT_END is ready because of `after_watermark`, which makes a pane on time."""

    WAITING = 0
    READY = 1
    AT_END = 2


@dataclass(frozen=True)
class ReferenceTriggerContext:
    """The end of the window, and the current times."""

    end: Instant
    watermark: Instant
    clock: Instant

    @property
    def is_past_end(self) -> bool:
        """Tell whether the watermark has passed the end."""
        return self.watermark >= self.end


@dataclass(frozen=True)
class ArrivalCounts:
    """The new elements of a window in a batch: the count, the counts per predicate, and the time."""

    elements: int
    matching: Mapping[Predicate, int]
    clock: int


@dataclass(frozen=True)
class MergedTrigger:
    """The trigger of a merged window, and whether that window has unemitted elements."""

    trigger: "ReferenceTrigger"
    has_pending: bool


class ReferenceTrigger(ABC):
    """The protocol of a trigger instance."""

    @abstractmethod
    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Take note of new elements."""

    @abstractmethod
    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Tell whether it would fire. Readiness only decreases after a firing or a merge."""

    @abstractmethod
    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Take note of a firing; return whether this trigger has finished."""

    @abstractmethod
    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Combine the triggers of merged windows into a new state; `context.end` is the merged end."""


class ReferenceAfterWatermark(ReferenceTrigger):
    """`after_watermark`: ready from the end on."""

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Ignore elements."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready if W >= end."""
        return TriggerReadiness.AT_END if context.is_past_end else TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """There is no state to merge."""


class ReferenceAfterCount(ReferenceTrigger):
    """`after_count` and `after_punctuation`: ready after a number of (matching) elements."""

    def __init__(self, required_count: int, predicate: Predicate | None = None) -> None:
        self.required_count = required_count
        self.predicate = predicate
        self.count = 0

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Count the batch as a whole."""
        self.count += arrivals.elements if self.predicate is None else arrivals.matching[self.predicate]

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready if enough elements arrived."""
        return TriggerReadiness.READY if self.count >= self.required_count else TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish; the count is dropped."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Add the counts."""
        self.count = sum(trigger.count for trigger in triggers_of_type(ReferenceAfterCount, merged))


class ReferenceProcessingTimer(ReferenceTrigger):
    """`after_processing_time` and `every`: the first element sets a timer on the clock."""

    def __init__(self, definition: AfterProcessingTime | Every) -> None:
        self.definition = definition
        self.due_at: int | None = None

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Set the timer, if there is none and elements arrived."""
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
        """Ready if the clock has reached the timer."""
        return (
            TriggerReadiness.READY
            if self.due_at is not None and context.clock >= self.due_at
            else TriggerReadiness.WAITING
        )

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """The earliest timer with unemitted elements wins."""
        pending_triggers = triggers_of_type(
            ReferenceProcessingTimer, [part for part in merged if part.has_pending]
        )
        self.due_at = min(
            (trigger.due_at for trigger in pending_triggers if trigger.due_at is not None), default=None
        )


class ReferenceNever(ReferenceTrigger):
    """The default of an undefined early trigger."""

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Ignore elements."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Never ready."""
        return TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Never finish."""
        return False

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """There is no state to merge."""


def triggers_of_type(trigger_type: type[TriggerT], merged: Iterable[MergedTrigger]) -> list[TriggerT]:
    """Return the trigger instances of merged windows, which all have the same type."""
    return [part.trigger for part in merged if isinstance(part.trigger, trigger_type)]
