"""The elements of a batch for order windows: each key's stored elements, then its new ones, in one sequence."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.state.header_columns import BoolArray, Int64Array


@dataclass(frozen=True)
class ElementSequence:
    """Elements sorted by key, then in their order. `rows` has their columns.

    `is_buffered` marks elements from the state, which come first in each key. One such element may stand for
    several records.
    """

    key_count: int
    key_of_element: Int64Array
    is_buffered: BoolArray
    rows: Rows
    compared_values: Mapping[str, NumpyColumn]
    """The values of the fields that policies compare, None for null."""

    @cached_property
    def first_of_key(self) -> Int64Array:
        """The position of each key's first element."""
        return np.searchsorted(self.key_of_element, np.arange(self.key_count))

    @cached_property
    def first_incoming(self) -> Int64Array:
        """The position of each key's first new element."""
        buffered_counts = np.bincount(self.key_of_element[self.is_buffered], minlength=self.key_count)
        return self.first_of_key + buffered_counts

    @cached_property
    def end_of_key(self) -> Int64Array:
        """The position after each key's last element."""
        return np.searchsorted(self.key_of_element, np.arange(self.key_count), side="right")

    def running_sums(self, amounts: NumpyColumn) -> Int64Array:
        """Return, for each element, the running sum over its key's elements, itself included."""
        running = np.cumsum(amounts)
        total_before = np.append(0, running)[self.first_of_key[self.key_of_element]]
        return np.asarray(running - total_before)

    def last_of_key(self, running_sums: Int64Array) -> Int64Array:
        """Return the last value of a running sum for each key; 0 for a key without elements."""
        last_values = np.zeros(self.key_count, np.int64)
        has_elements = self.end_of_key > self.first_of_key
        last_values[has_elements] = running_sums[self.end_of_key[has_elements] - 1]
        return last_values


@dataclass(frozen=True)
class WindowSlices:
    """The windows of a batch, each as the elements [begin, end), in the order in which their keys emit them.

    Each key's elements from `buffered_from` on stay in the state; `key_headers` is the new header of each
    key.
    """

    begin: Int64Array
    end: Int64Array
    key_of_window: Int64Array
    buffered_from: Int64Array
    key_headers: Rows


def expand_ranges(begin: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return all positions of some ranges [begin, end), and for each the number of its range."""
    lengths = end - begin
    range_of_element = np.repeat(np.arange(len(begin)), lengths)
    offset_in_range = np.arange(len(range_of_element)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return begin[range_of_element] + offset_in_range, range_of_element
