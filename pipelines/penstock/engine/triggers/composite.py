"""Composite triggers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.triggers.base import NewElementCounts, TriggerMachine, WindowMerge
from penstock.engine.triggers.primitive import WINDOW_END_COLUMN


@dataclass(frozen=True)
class ParallelMachine(TriggerMachine):
    """`after_any` and `after_all`: all parts see every element, and all end when the whole fires."""

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


@dataclass(frozen=True)
class SequenceMachine(TriggerMachine):
    """`after_each`: only the active part sees elements; when it finishes, the next one starts."""

    name: str
    parts: Sequence[TriggerMachine]

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        yield StateColumn(self.name, pa.int32(), 0)
        for part in self.parts:
            yield from part.state_columns()

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        for position, part in enumerate(self.parts):
            part.on_elements(rows, new_elements.for_windows(rows[self.name] == position), batch_time)

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(
            self._select_active(rows, [part.should_fire(rows, batch_time) for part in self.parts], False)
        )

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(
            self._select_active(rows, [part.fires_at_end(rows, batch_time) for part in self.parts], False)
        )

    @override
    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        return np.asarray(
            self._select_active(
                rows, [part.next_timer(rows, batch_time) for part in self.parts], MAX_TIMESTAMP_MS
            )
        )

    @override
    def on_fire(self, rows: Rows, window_mask: BoolArray, batch_time: BatchTime) -> BoolArray:
        turn = rows[self.name].copy()
        for position, part in enumerate(self.parts):
            finished = part.on_fire(rows, window_mask & (turn == position), batch_time)
            rows[self.name][finished] = position + 1
        return np.asarray(window_mask & (rows[self.name] == len(self.parts)))

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        turn = window_merge.sources[self.name]
        lowest_turn = np.full(len(rows), len(self.parts), turn.dtype)
        np.minimum.at(lowest_turn, window_merge.target_rows, turn)
        merged_rows = np.unique(window_merge.target_rows)
        rows[self.name][merged_rows] = lowest_turn[merged_rows]
        for position, part in enumerate(self.parts):
            part.on_merge(
                rows,
                window_merge.for_sources(
                    (turn == position) & (lowest_turn[window_merge.target_rows] == position)
                ),
            )

    def _select_active(self, rows: Rows, part_values: Sequence[Any], default: Any) -> Any:
        active = rows[self.name]
        return np.select([active == position for position in range(len(part_values))], part_values, default)


@dataclass(frozen=True)
class OrFinallyMachine(TriggerMachine):
    """`or_finally`: behaves like `main` until `until` is ready at a firing, or `main` finishes."""

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


@dataclass(frozen=True)
class RepeatedlyMachine(TriggerMachine):
    """`repeatedly`: restarts its trigger each time that it finishes."""

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


@dataclass(frozen=True)
class EarlyLateMachine(TriggerMachine):
    """`after_watermark(early, late)`: `early` until the end of the window, once at the end, then `late`."""

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
    """Never ready. It is used where no early trigger is declared."""

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.zeros(len(rows), bool)
