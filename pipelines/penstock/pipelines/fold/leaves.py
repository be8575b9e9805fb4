"""The triggers that have no parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.pipelines.fold.machine import Elements, Machine, Merging
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Rows, Slot
from penstock.pipelines.plan.predicates import Predicate
from penstock.pipelines.state.columns import NEVER, Ints, Mask

WINDOW_END: Final = "window_end"


@dataclass(frozen=True)
class PastEnd(Machine):
    """`after_watermark` alone: ready from the end on."""

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        return self.at_end(rows, moment)

    @override
    def at_end(self, rows: Rows, moment: Moment) -> Mask:
        return np.asarray(rows[WINDOW_END] <= moment.watermark)


@dataclass(frozen=True)
class Counted(Machine):
    """`after_count` and `after_punctuation`: enough elements since it began, of all or of those that match."""

    name: str
    enough: int
    predicate: Predicate | None = None

    @override
    def slots(self) -> Iterator[Slot]:
        yield Slot(self.name, pa.int64(), 0)

    @override
    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        rows[self.name] += came.count if self.predicate is None else came.matches[self.predicate]

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        return np.asarray(rows[self.name] >= self.enough)

    @override
    def merge(self, rows: Rows, merging: Merging) -> None:
        np.add.at(rows[self.name], merging.into, merging.parts[self.name])


@dataclass(frozen=True)
class Timed(Machine):
    """`after_processing_time` and `every`: the clock has come to a time that the first element set."""

    name: str
    delay: int = 0
    period: int | None = None

    @override
    def slots(self) -> Iterator[Slot]:
        yield Slot(self.name, pa.int64(), NEVER)

    @override
    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        begins = (came.count > 0) & (rows[self.name] == NEVER)
        rows[self.name][begins] = self._set_at(moment.clock)

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        return np.asarray(rows[self.name] <= moment.clock)

    @override
    def clock_due(self, rows: Rows, moment: Moment) -> Ints:
        return np.where(rows[self.name] > moment.clock, rows[self.name], NEVER)

    @override
    def merge(self, rows: Rows, merging: Merging) -> None:
        # A timer belongs to the elements that set it: where all of them were shown it is gone.
        waiting = merging.among(merging.unshown)
        np.minimum.at(rows[self.name], waiting.into, waiting.parts[self.name])

    def _set_at(self, clock: int) -> int:
        if self.period is None:
            return clock + self.delay
        return ((clock - self.delay) // self.period + 1) * self.period + self.delay
