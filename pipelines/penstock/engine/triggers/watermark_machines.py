"""The machines of triggers that wait for the watermark."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.triggers.machine import (
    WINDOW_END_COLUMN,
    NewElementCounts,
    TriggerMachine,
    WindowMerge,
)


@dataclass(frozen=True)
class EndOfWindowMachine(TriggerMachine):
    """Ready once the watermark passes the end of the window."""

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return self.fires_at_end(rows, batch_time)

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(rows[WINDOW_END_COLUMN] <= batch_time.watermark)


@dataclass(frozen=True)
class EarlyLateMachine(TriggerMachine):
    """Ready as `early` until the end of the window, once at the end, then as `late`."""

    name: str
    early: TriggerMachine
    late: TriggerMachine

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        yield StateColumn(self.name, pa.bool_(), initial=False)
        yield from self.early.state_columns()
        yield from self.late.state_columns()

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        has_passed = rows[self.name]
        self.early.on_elements(rows, new_elements.for_windows(~has_passed), batch_time)
        self.late.on_elements(rows, new_elements.for_windows(has_passed), batch_time)

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        has_ended = rows[WINDOW_END_COLUMN] <= batch_time.watermark
        early_ready = ~has_ended & self.early.should_fire(rows, batch_time)
        return self.fires_at_end(rows, batch_time) | np.where(
            rows[self.name], self.late.should_fire(rows, batch_time), early_ready
        )

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(~rows[self.name] & (rows[WINDOW_END_COLUMN] <= batch_time.watermark))

    @override
    def on_fire(self, rows: Rows, window_mask: BoolArray, batch_time: BatchTime) -> BoolArray:
        is_passing = window_mask & self.fires_at_end(rows, batch_time)
        is_late = window_mask & rows[self.name]
        self.early.on_fire(rows, window_mask & ~is_late & ~is_passing, batch_time)
        self.late.on_fire(rows, is_late, batch_time)
        rows[self.name][is_passing] = True
        # Counts and timers from before the end are discarded, even if a merge moves the end again.
        self.early.reset(rows, is_passing)
        self.late.reset(rows, is_passing)
        return np.zeros(len(rows), bool)

    @override
    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        return np.where(
            rows[self.name], self.late.next_timer(rows, batch_time), self.early.next_timer(rows, batch_time)
        )

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        self.early.on_merge(rows, window_merge)
        self.late.on_merge(rows, window_merge)
        merged_rows = np.unique(window_merge.target_rows)
        rows[self.name][merged_rows] = window_merge.has_ended[merged_rows]


@dataclass(frozen=True)
class NeverMachine(TriggerMachine):
    """Never ready, where no early trigger is declared."""

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.zeros(len(rows), bool)
