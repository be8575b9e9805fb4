"""The machine of triggers whose parts run side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.triggers.machine import NewElementCounts, TriggerMachine, WindowMerge


@dataclass(frozen=True)
class ParallelMachine(TriggerMachine):
    """All parts see every element, and all end when the whole fires."""

    parts: Sequence[TriggerMachine]
    requires_all: bool

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        for part in self.parts:
            yield from part.state_columns()

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        for part in self.parts:
            part.on_elements(rows, new_elements, batch_time)

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        combine: Any = np.logical_and if self.requires_all else np.logical_or
        return np.asarray(reduce(combine, [part.should_fire(rows, batch_time) for part in self.parts]))

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        any_at_end = reduce(np.logical_or, [part.fires_at_end(rows, batch_time) for part in self.parts])
        return np.asarray(any_at_end & self.should_fire(rows, batch_time))

    @override
    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        return np.asarray(reduce(np.minimum, [part.next_timer(rows, batch_time) for part in self.parts]))

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        for part in self.parts:
            part.on_merge(rows, window_merge)
