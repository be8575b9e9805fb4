"""The policy of order windows by the increase of a field."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np

from penstock.engine.columnar import Rows
from penstock.engine.definition.argument_checks import require, require_name
from penstock.engine.definition.keyword import keyword
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.element_sequence import ElementSequence
from penstock.engine.windows.order_policy import ClosePolicy, EvictionPolicy, TriggerPolicy, has_risen


@dataclass(frozen=True)
class DeltaPolicy(ClosePolicy, EvictionPolicy, TriggerPolicy):
    """A difference in a field.

    Tumbling: a record more than `by` above the first record of the window closes it and opens the next one.
    Eviction: the oldest records are evicted while they are more than `by` below the new record. Trigger: a record
    more than `by` above the record that fired last (initially the first record) emits the content before it.
    """

    location: ClassVar[str] = "window.delta.field"

    field: str
    by: float

    def __post_init__(self) -> None:
        require_name(self.field, "window.delta.field")
        is_number = isinstance(self.by, int | float) and not isinstance(self.by, bool)
        fix = "Give a difference of 0 or more"
        require(is_number and 0 <= self.by < inf, "window.delta.by", repr(self.by), fix)

    @property
    def compared_field(self) -> str:
        """The field must be a number."""
        return self.field

    @property
    def base_field(self) -> str:
        """A trigger compares with the record that fired last."""
        return self.field

    def describe_close(self) -> str:
        """Describe when a window closes."""
        return f"before a record whose {self.field} is more than {self.by:g} above the window's first"

    def describe_eviction(self) -> str:
        """Describe which records remain."""
        return f"records whose {self.field} is at most {self.by:g} below the newest"

    def describe_trigger(self) -> str:
        """Describe when the content is emitted."""
        return f"whenever {self.field} has risen by more than {self.by:g}"

    def number_windows(
        self, sequence: ElementSequence, key_headers: Rows, clock: int
    ) -> tuple[Int64Array, Int64Array]:
        """Compare the records of each key with the first of their window, one by one."""
        values = sequence.compared_values[self.field]
        window_numbers = np.empty(len(sequence.key_of_element), np.int64)
        closed_counts = np.zeros(sequence.key_count, np.int64)
        ranges = zip(sequence.first_of_key.tolist(), sequence.end_of_key.tolist(), strict=True)
        for key, (begin, end) in enumerate(ranges):
            first, window_number = None, 0
            for position in range(begin, end):
                value = values[position]
                if has_risen(first, value, self.by):
                    first, window_number = value, window_number + 1
                elif first is None:
                    first = value
                window_numbers[position] = window_number
            closed_counts[key] = window_number
        return window_numbers, closed_counts

    def evict_before(self, sequence: ElementSequence, oldest: int, position: int) -> int:
        """Evict while the oldest record is too far below the new one."""
        values = sequence.compared_values[self.field]
        while oldest < position and has_risen(values[oldest], values[position], self.by):
            oldest += 1
        return oldest

    def fires_before(self, value: Any, base: Any) -> bool:
        """Return whether the value has risen since the last firing."""
        return has_risen(base, value, self.by)


@keyword("delta")
def delta(field: str, by: float) -> DeltaPolicy:
    """A policy of order windows by the increase of a field.

    Args:
        field: the name of a numeric field.
        by: more than this above the first record closes a window, or above the record that fired last emits it.

    Example:
        window(tumbling(delta("distance", by=1000)))
    """
    return DeltaPolicy(field, by)
