"""The trigger that restarts another one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.definition.keyword import keyword
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.triggers.machine import (
    NewElementCounts,
    TriggerColumnNames,
    TriggerMachine,
    WindowMerge,
)
from penstock.engine.triggers.trigger import Trigger, require_trigger


@dataclass(frozen=True)
class Repeatedly(Trigger):
    """Fires as `trigger`, and restarts it whenever it finishes."""

    trigger: Trigger

    def __post_init__(self) -> None:
        require_trigger(self.trigger, "trigger.repeatedly")

    @override
    def describe(self) -> str:
        return self.trigger.describe_repeated()

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        return RepeatedlyMachine(self.trigger.create_machine(column_names))

    @property
    @override
    def parts(self) -> tuple[Trigger, ...]:
        return (self.trigger,)

    @property
    @override
    def can_finish(self) -> bool:
        return False

    @property
    @override
    def can_fire_before_end(self) -> bool:
        return self.trigger.can_fire_before_end

    @property
    @override
    def shows_all_elements(self) -> bool:
        return self.trigger.shows_all_elements_when_repeated


@keyword("repeatedly", synonyms=("repeat", "forever", "repeatedlyforever"))
def repeatedly(of: Trigger) -> Repeatedly:
    """Restart a trigger each time that it finishes.

    Args:
        of: the trigger.

    Example:
        trigger(repeatedly(after_count(100)))
    """
    return Repeatedly(of)


@dataclass(frozen=True)
class RepeatedlyMachine(TriggerMachine):
    """Restarts its trigger each time that it finishes."""

    repeated: TriggerMachine

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        return self.repeated.state_columns()

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        self.repeated.on_elements(rows, new_elements, batch_time)

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return self.repeated.should_fire(rows, batch_time)

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return self.repeated.fires_at_end(rows, batch_time)

    @override
    def on_fire(self, rows: Rows, window_mask: BoolArray, batch_time: BatchTime) -> BoolArray:
        self.repeated.reset(rows, self.repeated.on_fire(rows, window_mask, batch_time))
        return np.zeros(len(rows), bool)

    @override
    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        return self.repeated.next_timer(rows, batch_time)

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        self.repeated.on_merge(rows, window_merge)
