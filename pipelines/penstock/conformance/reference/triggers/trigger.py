"""The interface of the reference triggers, and their creation.

A trigger instance belongs to one key and window. Once per batch, it is notified of new elements (`on_elements`)
and evaluated (`check_readiness`). If the window fires, `on_fire` returns whether the trigger has finished.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import singledispatch
from typing import TypeVar

from penstock.conformance.reference.input_records import Instant
from penstock.engine.definition.predicates import Predicate
from penstock.engine.triggers.trigger import Trigger

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


@singledispatch
def create_trigger(trigger: Trigger) -> ReferenceTrigger:
    """Return the trigger in its initial state. Each kind registers its reference with `create_trigger.register`."""
    kind = type(trigger).__name__
    raise NotImplementedError(f"{kind} has no reference; register one with create_trigger.register({kind})")


def triggers_of_type(trigger_type: type[TriggerT], merged: Iterable[MergedTrigger]) -> list[TriggerT]:
    """Return the trigger instances of merged windows, which all have the same type."""
    return [part.trigger for part in merged if isinstance(part.trigger, trigger_type)]


def merged_parts(
    trigger_type: type[TriggerT],
    merged: Iterable[MergedTrigger],
    part_of: Callable[[TriggerT], ReferenceTrigger],
) -> list[MergedTrigger]:
    """Return one part of each trigger of merged windows, which all have the same type."""
    return [
        MergedTrigger(part_of(window.trigger), window.has_pending)
        for window in merged
        if isinstance(window.trigger, trigger_type)
    ]
