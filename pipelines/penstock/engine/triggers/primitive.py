"""Triggers without parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.definition.predicates import Predicate
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.triggers.base import NewElementCounts, TriggerMachine, WindowMerge

WINDOW_END_COLUMN: Final = "window_end"


@dataclass(frozen=True)
class EndOfWindowMachine(TriggerMachine):
    """`after_watermark` without early or late: ready once the watermark passes the end of the window."""

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return self.fires_at_end(rows, batch_time)

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(rows[WINDOW_END_COLUMN] <= batch_time.watermark)


@dataclass(frozen=True)
class CountMachine(TriggerMachine):
    """`after_count` and `after_punctuation`: ready after enough elements, or enough that match the predicate."""

    name: str
    threshold: int
    predicate: Predicate | None = None

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        yield StateColumn(self.name, pa.int64(), 0)

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        rows[self.name] += (
            new_elements.counts if self.predicate is None else new_elements.matches[self.predicate]
        )

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(rows[self.name] >= self.threshold)

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        np.add.at(rows[self.name], window_merge.target_rows, window_merge.sources[self.name])


@dataclass(frozen=True)
class ProcessingTimeMachine(TriggerMachine):
    """`after_processing_time` and `every`: ready when the clock reaches the time that the first element set."""

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
