"""The machine of triggers that count elements."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.definition.predicates import Predicate
from penstock.engine.state.header_columns import BoolArray
from penstock.engine.triggers.machine import NewElementCounts, TriggerMachine, WindowMerge


@dataclass(frozen=True)
class CountMachine(TriggerMachine):
    """Ready after enough elements, or enough elements that match the predicate."""

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
