"""The trigger that ends when another one fires."""

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
class OrFinally(Trigger):
    """Fires as `trigger`, until `until` fires or `trigger` finishes. `until` counts across firings of `trigger`."""

    trigger: Trigger
    until: Trigger

    def __post_init__(self) -> None:
        require_trigger(self.trigger, "trigger.or_finally")
        require_trigger(self.until, "trigger.or_finally.until")

    @override
    def describe(self) -> str:
        return f"{self.trigger.describe()}; and a last time {self.until.describe()}"

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        main = self.trigger.create_machine(column_names)
        return OrFinallyMachine(main, self.until.create_machine(column_names))

    @property
    @override
    def parts(self) -> tuple[Trigger, ...]:
        return (self.trigger, self.until)

    @property
    @override
    def can_fire_before_end(self) -> bool:
        return self.trigger.can_fire_before_end or self.until.can_fire_before_end


@keyword("or_finally", synonyms=("until", "finally"))
def or_finally(of: Trigger, until: Trigger) -> OrFinally:
    """Fire as one trigger, until another one fires: then fire a last time, and finish.

    Args:
        of: the trigger that fires.
        until: the trigger that ends it.

    Example:
        trigger(or_finally(repeatedly(after_count(10)), until=after_watermark()), may_finish=True)
    """
    return OrFinally(of, until)


@dataclass(frozen=True)
class OrFinallyMachine(TriggerMachine):
    """Behaves like `main` until `until` is ready at a firing, or `main` finishes."""

    main: TriggerMachine
    until: TriggerMachine

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        yield from self.main.state_columns()
        yield from self.until.state_columns()

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        self.main.on_elements(rows, new_elements, batch_time)
        self.until.on_elements(rows, new_elements, batch_time)

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return self.main.should_fire(rows, batch_time) | self.until.should_fire(rows, batch_time)

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return self.main.fires_at_end(rows, batch_time) | self.until.fires_at_end(rows, batch_time)

    @override
    def on_fire(self, rows: Rows, window_mask: BoolArray, batch_time: BatchTime) -> BoolArray:
        is_over = window_mask & self.until.should_fire(rows, batch_time)
        return is_over | self.main.on_fire(
            rows, window_mask & ~is_over & self.main.should_fire(rows, batch_time), batch_time
        )

    @override
    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        return np.minimum(self.main.next_timer(rows, batch_time), self.until.next_timer(rows, batch_time))

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        self.main.on_merge(rows, window_merge)
        self.until.on_merge(rows, window_merge)
