"""Sliding order windows: after each record or by the clock, emit the records of a key that eviction has left."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.engine.columnar import Rows
from penstock.engine.definition.argument_checks import require_type
from penstock.engine.definition.keyword import keyword
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.windows.element_sequence import ElementSequence, WindowSlices
from penstock.engine.windows.order_policy import EvictionPolicy, TriggerPolicy
from penstock.engine.windows.order_window import COUNTER_NOTE, DELTA_BASE_COLUMN, POLICY_HINT, OrderWindow
from penstock.engine.windows.window import StateRetention


@dataclass(frozen=True)
class SlidingOrder(OrderWindow):
    """An order window: the records of a key that remain after eviction, emitted by a trigger policy.

    A delta or time trigger is evaluated before a record is added, and emits the content before it. Then old records
    are evicted and the record is added. Then a count trigger is evaluated. Each pane is its own window, numbered
    from 0.
    """

    stores_single_records: ClassVar[bool] = True

    evict: EvictionPolicy
    trigger: TriggerPolicy

    def __post_init__(self) -> None:
        require_type(self.evict, EvictionPolicy, "window.sliding_by.evict", POLICY_HINT)
        require_type(self.trigger, TriggerPolicy, "window.sliding_by.trigger", POLICY_HINT)

    def describe(self) -> str:
        """Describe what is kept, and when it is emitted."""
        retained, firing = self.evict.describe_eviction(), self.trigger.describe_trigger()
        return f"a sliding window over a key's records in order, keeping {retained}, emitted {firing}"

    @property
    def policies(self) -> tuple[EvictionPolicy, TriggerPolicy]:
        """The policy that evicts records, and the one that emits the others."""
        return self.evict, self.trigger

    @property
    def base_field(self) -> str | None:
        """The field that the trigger compares with its value at the last firing."""
        return self.trigger.base_field

    def describe_state(self, lateness: int) -> StateRetention:
        """Describe the records that are not evicted."""
        return StateRetention(
            "windows",
            f"per key, {self.evict.describe_eviction()}, and a window counter",
            f"they are evicted; {COUNTER_NOTE}",
        )

    def slice_windows(self, sequence: ElementSequence, key_headers: Rows, clock: int) -> WindowSlices:
        """Process each key's elements in order: fire by the value, evict, add, fire by the count."""
        windows: list[tuple[int, int, int]] = []
        buffered_from = sequence.first_of_key.copy()
        for key_number in range(sequence.key_count):
            key = _SlidingWindowKey(self, sequence, key_headers, key_number, clock)
            windows += [(begin, end, key_number) for begin, end in key.emit_ranges()]
            buffered_from[key_number] = key.oldest
            key.write_header(key_headers)
        begin, end, key_of_window = np.array(windows, np.int64).reshape(-1, 3).T
        return WindowSlices(begin, end, key_of_window, buffered_from, key_headers)

    def next_due_clock(self, key_headers: Rows, has_buffered: BoolArray) -> Int64Array:
        """Return the clock at which each key fires without a new record."""
        return self.trigger.next_firing_clock(key_headers)


@keyword("sliding_by")
def sliding_by(evict: EvictionPolicy, trigger: TriggerPolicy) -> SlidingOrder:
    """Keep the newest records of a key, in their order, and emit them. For windows of event time, use `sliding`.

    Args:
        evict: the policy that removes old records: `records`, `delta` or `elapsed`.
        trigger: the policy that emits the content: `records`, `delta` or `elapsed`.

    Example:
        key("device").window(sliding_by(evict=records(100), trigger=records(10)))
    """
    return SlidingOrder(evict, trigger)


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
        self._waiting_count = int(key_headers["elements_since_pane"][key_number])
        self._waiting_since = int(key_headers["since_clock"][key_number])
        base_field = window.base_field
        self._base_values = None if base_field is None else sequence.compared_values[base_field]
        self._base: Any = None if base_field is None else key_headers[DELTA_BASE_COLUMN][key_number]

    def emit_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of elements that the key emits."""
        evict, trigger, sequence = self._window.evict, self._window.trigger, self._sequence
        self.oldest = evict.evict_by_clock(sequence, self.oldest, self._first_incoming, self._clock)
        if trigger.fires_by_clock(self._waiting_count, self._waiting_since, self._clock):
            yield from self._emit_range(self._first_incoming)
        for position in range(self._first_incoming, self._end):
            if self._base_values is not None and self._fires_before(self._base_values[position]):
                yield from self._emit_range(position)
            self.oldest = evict.evict_before(sequence, self.oldest, position)
            if not self._waiting_count:
                self._waiting_since = self._clock
            self._waiting_count += 1
            if trigger.fires_after(self._waiting_count):
                yield from self._emit_range(position + 1)

    def write_header(self, key_headers: Rows) -> None:
        """Write the key's new header."""
        key_headers["elements_since_pane"][self._key_number] = self._waiting_count
        key_headers["since_clock"][self._key_number] = self._waiting_since
        if self._base_values is not None:
            key_headers[DELTA_BASE_COLUMN][self._key_number] = self._base

    def _emit_range(self, end: int) -> Iterator[tuple[int, int]]:
        self._waiting_count = 0
        if self.oldest < end:
            yield self.oldest, end

    def _fires_before(self, value: Any) -> bool:
        """Return whether an element fires by its value, which then becomes the new base."""
        is_firing = self._window.trigger.fires_before(value, self._base)
        if is_firing or self._base is None:
            self._base = value
        return is_firing
