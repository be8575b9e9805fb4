"""The machine of triggers that wait for the batch clock."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.triggers.machine import NewElementCounts, TriggerMachine, WindowMerge


@dataclass(frozen=True)
class ProcessingTimeMachine(TriggerMachine):
    """Ready when the clock reaches the time that the first element set.

    The time is `delay` later, or with a period the next multiple of it, shifted by `delay`.
    """

    name: str
    delay: int = 0
    period: int | None = None

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        yield StateColumn(self.name, pa.int64(), MAX_TIMESTAMP_MS)

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        starts_timer = (new_elements.counts > 0) & (rows[self.name] == MAX_TIMESTAMP_MS)
        rows[self.name][starts_timer] = self._timer_time(batch_time.clock)

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(rows[self.name] <= batch_time.clock)

    @override
    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        return np.where(rows[self.name] > batch_time.clock, rows[self.name], MAX_TIMESTAMP_MS)

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        # A timer belongs to the elements that set it. If a pane has shown all of them, it is discarded.
        waiting_merge = window_merge.for_sources(window_merge.has_new_elements)
        np.minimum.at(rows[self.name], waiting_merge.target_rows, waiting_merge.sources[self.name])

    def _timer_time(self, clock: int) -> int:
        if self.period is None:
            return clock + self.delay
        return ((clock - self.delay) // self.period + 1) * self.period + self.delay
