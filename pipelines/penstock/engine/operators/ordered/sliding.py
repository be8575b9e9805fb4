"""Sliding order windows: after each record or by the clock, emit the records of a key that eviction has left."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.engine.columnar import Rows
from penstock.engine.operators.ordered.element_sequence import ElementSequence, WindowSlices
from penstock.engine.operators.ordered.state_schema import DELTA_BASE_COLUMN
from penstock.engine.plan.policies import CountPolicy, DeltaPolicy, TimePolicy
from penstock.engine.plan.windows import SlidingOrder
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, Int64Array


def slice_sliding(
    window: SlidingOrder, sequence: ElementSequence, key_headers: Rows, clock: int
) -> WindowSlices:
    """Process each key's elements in order: fire by delta, evict, add, fire."""
    windows: list[tuple[int, int, int]] = []
    buffered_from = sequence.first_of_key.copy()
    for key_number in range(sequence.key_count):
        key = _SlidingWindowKey(window, sequence, key_headers, key_number, clock)
        windows += [(begin, end, key_number) for begin, end in key.emit_ranges()]
        buffered_from[key_number] = key.oldest
        key.write_header(key_headers)
    begin, end, key_of_window = np.array(windows, np.int64).reshape(-1, 3).T
    return WindowSlices(begin, end, key_of_window, buffered_from, key_headers)


def next_sliding_due(window: SlidingOrder, key_headers: Rows) -> Int64Array:
    """Return the clock at which each key fires without a new record."""
    match window.trigger:
        case TimePolicy(elapsed):
            return np.where(
                key_headers["elements_since_pane"] > 0, key_headers["since_clock"] + elapsed, MAX_TIMESTAMP_MS
            )
        case _:
            return np.full(len(key_headers), MAX_TIMESTAMP_MS, np.int64)


class _SlidingWindowKey:
    """One key in a batch. Its window holds the elements from `oldest` up to the current one."""

    def __init__(
        self, window: SlidingOrder, sequence: ElementSequence, key_headers: Rows, key_number: int, clock: int
    ) -> None:
        self.oldest = int(sequence.first_of_key[key_number])
        self._key_number = key_number
        self._first_incoming = int(sequence.first_incoming[key_number])
        self._end = int(sequence.end_of_key[key_number])
        self._window = window
        self._sequence = sequence
        self._clock = clock
        self._elements_since_pane = int(key_headers["elements_since_pane"][key_number])
        self._waiting_since = int(key_headers["since_clock"][key_number])
        self._delta_trigger = window.trigger if isinstance(window.trigger, DeltaPolicy) else None
        self._delta_base: Any = key_headers[DELTA_BASE_COLUMN][key_number] if self._delta_trigger else None

    def emit_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of elements that the key emits."""
        self._evict_by_clock()
        if self._is_due():
            yield from self._emit_range(self._first_incoming)
        for position in range(self._first_incoming, self._end):
            if self._delta_fires(position):
                yield from self._emit_range(position)
            self._evict_for(position)
            if not self._elements_since_pane:
                self._waiting_since = self._clock
            self._elements_since_pane += 1
            match self._window.trigger:
                case CountPolicy(n) if self._elements_since_pane >= n:
                    yield from self._emit_range(position + 1)

    def write_header(self, key_headers: Rows) -> None:
        """Write the key's new header."""
        key_headers["elements_since_pane"][self._key_number] = self._elements_since_pane
        key_headers["since_clock"][self._key_number] = self._waiting_since
        if self._delta_trigger:
            key_headers[DELTA_BASE_COLUMN][self._key_number] = self._delta_base

    def _emit_range(self, end: int) -> Iterator[tuple[int, int]]:
        self._elements_since_pane = 0
        if self.oldest < end:
            yield self.oldest, end

    def _is_due(self) -> bool:
        match self._window.trigger:
            case TimePolicy(elapsed):
                return self._elements_since_pane > 0 and self._clock >= self._waiting_since + elapsed
            case _:
                return False

    def _delta_fires(self, position: int) -> bool:
        """Return whether this element exceeds the base by more than the delta.

        If so, it becomes the new base.
        """
        if self._delta_trigger is None:
            return False
        value = self._sequence.delta_values[self._delta_trigger.field][position]
        is_exceeded = _exceeds_delta(self._delta_base, value, self._delta_trigger.by)
        if is_exceeded or self._delta_base is None:
            self._delta_base = value
        return is_exceeded

    def _evict_by_clock(self) -> None:
        match self._window.evict:
            case TimePolicy(elapsed):
                arrival_clocks = self._sequence.rows["arrival_clock"]
                while (
                    self.oldest < self._first_incoming
                    and arrival_clocks[self.oldest] + elapsed <= self._clock
                ):
                    self.oldest += 1

    def _evict_for(self, position: int) -> None:
        match self._window.evict:
            case CountPolicy(n):
                self.oldest = max(self.oldest, position - n + 1)
            case DeltaPolicy(field, delta):
                values = self._sequence.delta_values[field]
                while self.oldest < position and _exceeds_delta(values[self.oldest], values[position], delta):
                    self.oldest += 1


def _exceeds_delta(first: Any, value: Any, delta: float) -> bool:
    return first is not None and value is not None and value - first > delta
