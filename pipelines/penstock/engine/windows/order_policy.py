"""The bases of policies of order windows: when a window closes, evicts old records, or emits its content.

A policy is evaluated for each key, record by record, in record order. A kind of policy derives from each of the
bases for which it has a meaning: `ClosePolicy`, `EvictionPolicy`, `TriggerPolicy`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from penstock.engine.columnar import Rows
from penstock.engine.definition.predicates import Predicate
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.windows.element_sequence import ElementSequence


class OrderPolicy:
    """What all policies of order windows answer."""

    uses_clock: ClassVar[bool] = False
    """Whether the policy uses the batch clock. Then results depend on the clock of every batch."""

    location: ClassVar[str] = "window"
    """The location of the compared field or the condition in a definition, for errors."""

    @property
    def compared_field(self) -> str | None:
        """The field of a record that the policy compares as a number, if any."""
        return None

    @property
    def condition(self) -> Predicate | None:
        """The condition that the policy evaluates on each record, if any."""
        return None


class ClosePolicy(OrderPolicy, ABC):
    """Closes the tumbling windows of a key."""

    @property
    def max_records(self) -> int | None:
        """The most records of an open window; None if there is no limit."""
        return None

    @abstractmethod
    def describe_close(self) -> str:
        """Describe when a window closes, as in `after every 5 records`."""

    @abstractmethod
    def number_windows(
        self, sequence: ElementSequence, key_headers: Rows, clock: int
    ) -> tuple[Int64Array, Int64Array]:
        """Return the window number of each element, 0 for the open window, and the closed windows of each key."""

    def next_close_clock(self, key_headers: Rows, has_buffered: BoolArray) -> Int64Array:
        """Return the clock at which the open window of each key closes without a new record."""
        return np.full(len(key_headers), MAX_TIMESTAMP_MS, np.int64)


class EvictionPolicy(OrderPolicy, ABC):
    """Evicts the oldest records of a sliding window."""

    @abstractmethod
    def describe_eviction(self) -> str:
        """Describe which records remain, as in `the last 5 records`."""

    def evict_by_clock(self, sequence: ElementSequence, oldest: int, end: int, clock: int) -> int:
        """Return the position of the oldest of the stored elements [oldest, end) that remains at this clock."""
        return oldest

    def evict_before(self, sequence: ElementSequence, oldest: int, position: int) -> int:
        """Return the position of the oldest element that remains when the element at `position` is added."""
        return oldest


class TriggerPolicy(OrderPolicy, ABC):
    """Emits the content of a sliding window."""

    @property
    def base_field(self) -> str | None:
        """The field whose value at the last firing is stored, if any."""
        return None

    @abstractmethod
    def describe_trigger(self) -> str:
        """Describe when the content is emitted, as in `after every 5 records`."""

    def fires_by_clock(self, waiting_count: int, waiting_since: int, clock: int) -> bool:
        """Return whether the clock emits, for so many records that wait to be emitted since a clock."""
        return False

    def fires_before(self, value: Any, base: Any) -> bool:
        """Return whether a record emits the content before it, by the value of its `base_field`."""
        return False

    def fires_after(self, waiting_count: int) -> bool:
        """Return whether the content is emitted after a record, when so many records wait."""
        return False

    def next_firing_clock(self, key_headers: Rows) -> Int64Array:
        """Return the clock at which the window of each key emits without a new record."""
        return np.full(len(key_headers), MAX_TIMESTAMP_MS, np.int64)


def has_risen(first: Any, value: Any, difference: float) -> bool:
    """Return whether a value is more than the difference above the first; false with a null."""
    return first is not None and value is not None and value - first > difference
