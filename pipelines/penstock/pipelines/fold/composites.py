"""The triggers that are made of others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.pipelines.fold.leaves import WINDOW_END
from penstock.pipelines.fold.machine import Elements, Machine, Merging
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Rows, Slot
from penstock.pipelines.state.columns import NEVER, Ints, Mask


@dataclass(frozen=True)
class Together(Machine):
    """`after_any` and `after_all`: all parts see everything, and all end when the whole fires."""

    parts: Sequence[Machine]
    all_of_them: bool

    @override
    def slots(self) -> Iterator[Slot]:
        for part in self.parts:
            yield from part.slots()

    @override
    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        for part in self.parts:
            part.observe(rows, came, moment)

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        combine: Any = np.logical_and if self.all_of_them else np.logical_or
        return np.asarray(reduce(combine, [part.ready(rows, moment) for part in self.parts]))

    @override
    def at_end(self, rows: Rows, moment: Moment) -> Mask:
        some = reduce(np.logical_or, [part.at_end(rows, moment) for part in self.parts])
        return np.asarray(some & self.ready(rows, moment))

    @override
    def clock_due(self, rows: Rows, moment: Moment) -> Ints:
        return np.asarray(reduce(np.minimum, [part.clock_due(rows, moment) for part in self.parts]))

    @override
    def merge(self, rows: Rows, merging: Merging) -> None:
        for part in self.parts:
            part.merge(rows, merging)


@dataclass(frozen=True)
class InTurn(Machine):
    """`after_each`: the present part alone sees elements and is asked; when it finishes the next begins."""

    name: str
    parts: Sequence[Machine]

    @override
    def slots(self) -> Iterator[Slot]:
        yield Slot(self.name, pa.int32(), 0)
        for part in self.parts:
            yield from part.slots()

    @override
    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        for position, part in enumerate(self.parts):
            part.observe(rows, came.among(rows[self.name] == position), moment)

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        return np.asarray(self._of_present(rows, [part.ready(rows, moment) for part in self.parts], False))

    @override
    def at_end(self, rows: Rows, moment: Moment) -> Mask:
        return np.asarray(self._of_present(rows, [part.at_end(rows, moment) for part in self.parts], False))

    @override
    def clock_due(self, rows: Rows, moment: Moment) -> Ints:
        return np.asarray(
            self._of_present(rows, [part.clock_due(rows, moment) for part in self.parts], NEVER)
        )

    @override
    def fire(self, rows: Rows, who: Mask, moment: Moment) -> Mask:
        at = rows[self.name].copy()
        for position, part in enumerate(self.parts):
            finished = part.fire(rows, who & (at == position), moment)
            rows[self.name][finished] = position + 1
        return np.asarray(who & (rows[self.name] == len(self.parts)))

    @override
    def merge(self, rows: Rows, merging: Merging) -> None:
        turn = merging.parts[self.name]
        least = np.full(len(rows), len(self.parts), turn.dtype)
        np.minimum.at(least, merging.into, turn)
        merged = np.unique(merging.into)
        rows[self.name][merged] = least[merged]
        for position, part in enumerate(self.parts):
            part.merge(rows, merging.among((turn == position) & (least[merging.into] == position)))

    def _of_present(self, rows: Rows, answers: Sequence[Any], absent: Any) -> Any:
        present = rows[self.name]
        return np.select([present == position for position in range(len(answers))], answers, absent)


@dataclass(frozen=True)
class Until(Machine):
    """`or_finally`: as `of`, until `until` is ready at a firing or `of` finishes."""

    of: Machine
    until: Machine

    @override
    def slots(self) -> Iterator[Slot]:
        yield from self.of.slots()
        yield from self.until.slots()

    @override
    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        self.of.observe(rows, came, moment)
        self.until.observe(rows, came, moment)

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        return self.of.ready(rows, moment) | self.until.ready(rows, moment)

    @override
    def at_end(self, rows: Rows, moment: Moment) -> Mask:
        return self.of.at_end(rows, moment) | self.until.at_end(rows, moment)

    @override
    def fire(self, rows: Rows, who: Mask, moment: Moment) -> Mask:
        over = who & self.until.ready(rows, moment)
        return over | self.of.fire(rows, who & ~over & self.of.ready(rows, moment), moment)

    @override
    def clock_due(self, rows: Rows, moment: Moment) -> Ints:
        return np.minimum(self.of.clock_due(rows, moment), self.until.clock_due(rows, moment))

    @override
    def merge(self, rows: Rows, merging: Merging) -> None:
        self.of.merge(rows, merging)
        self.until.merge(rows, merging)


@dataclass(frozen=True)
class Again(Machine):
    """`repeatedly`: when it finishes it begins again, whole."""

    of: Machine

    @override
    def slots(self) -> Iterator[Slot]:
        return self.of.slots()

    @override
    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        self.of.observe(rows, came, moment)

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        return self.of.ready(rows, moment)

    @override
    def at_end(self, rows: Rows, moment: Moment) -> Mask:
        return self.of.at_end(rows, moment)

    @override
    def fire(self, rows: Rows, who: Mask, moment: Moment) -> Mask:
        self.of.reset(rows, self.of.fire(rows, who, moment))
        return np.zeros(len(rows), bool)

    @override
    def clock_due(self, rows: Rows, moment: Moment) -> Ints:
        return self.of.clock_due(rows, moment)

    @override
    def merge(self, rows: Rows, merging: Merging) -> None:
        self.of.merge(rows, merging)


@dataclass(frozen=True)
class AroundEnd(Machine):
    """`after_watermark(early, late)`: early until the end, once at the end, late from then on."""

    name: str
    early: Machine
    late: Machine

    @override
    def slots(self) -> Iterator[Slot]:
        yield Slot(self.name, pa.bool_(), initial=False)
        yield from self.early.slots()
        yield from self.late.slots()

    @override
    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        passed = rows[self.name]
        self.early.observe(rows, came.among(~passed), moment)
        self.late.observe(rows, came.among(passed), moment)

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        ended = rows[WINDOW_END] <= moment.watermark
        early = ~ended & self.early.ready(rows, moment)
        return self.at_end(rows, moment) | np.where(rows[self.name], self.late.ready(rows, moment), early)

    @override
    def at_end(self, rows: Rows, moment: Moment) -> Mask:
        return np.asarray(~rows[self.name] & (rows[WINDOW_END] <= moment.watermark))

    @override
    def fire(self, rows: Rows, who: Mask, moment: Moment) -> Mask:
        passing = who & self.at_end(rows, moment)
        late = who & rows[self.name]
        self.early.fire(rows, who & ~late & ~passing, moment)
        self.late.fire(rows, late, moment)
        rows[self.name][passing] = True
        # What was counted and timed before the end stays behind it, also where a merge moves the end again.
        self.early.reset(rows, passing)
        self.late.reset(rows, passing)
        return np.zeros(len(rows), bool)

    @override
    def clock_due(self, rows: Rows, moment: Moment) -> Ints:
        return np.where(
            rows[self.name], self.late.clock_due(rows, moment), self.early.clock_due(rows, moment)
        )

    @override
    def merge(self, rows: Rows, merging: Merging) -> None:
        self.early.merge(rows, merging)
        self.late.merge(rows, merging)
        merged = np.unique(merging.into)
        rows[self.name][merged] = merging.ended[merged]


@dataclass(frozen=True)
class Silent(Machine):
    """Never ready: what stands where no early trigger was declared."""

    @override
    def ready(self, rows: Rows, moment: Moment) -> Mask:
        return np.zeros(len(rows), bool)
