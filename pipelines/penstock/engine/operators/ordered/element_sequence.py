"""A batch's work for order windows: what each key holds, followed by what came, in one sequence."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.state.header_columns import BoolArray, Int64Array


@dataclass(frozen=True)
class ElementSequence:
    """Elements key by key, a key's in their order; `rows` has what is known of each.

    `held` says which are from the state: those of a key come first. One of them may stand for several records.
    """

    key_count: int
    key_of_element: Int64Array
    is_buffered: BoolArray
    rows: Rows
    delta_values: Mapping[str, NumpyColumn]

    @cached_property
    def first_of_key(self) -> Int64Array:
        """Where each key's elements begin."""
        return np.searchsorted(self.key_of_element, np.arange(self.key_count))

    @cached_property
    def first_incoming(self) -> Int64Array:
        """Where each key's elements that came in this batch begin."""
        buffered_counts = np.bincount(self.key_of_element[self.is_buffered], minlength=self.key_count)
        return self.first_of_key + buffered_counts

    @cached_property
    def end_of_key(self) -> Int64Array:
        """Where each key's elements end."""
        return np.searchsorted(self.key_of_element, np.arange(self.key_count), side="right")

    def running_sums(self, amounts: NumpyColumn) -> Int64Array:
        """For each element, the sum over its key's elements up to and with it."""
        running = np.cumsum(amounts)
        total_before = np.append(0, running)[self.first_of_key[self.key_of_element]]
        return np.asarray(running - total_before)


@dataclass(frozen=True)
class WindowSlices:
    """What a batch makes of a series: windows, each the elements [begin, end), as their keys show them.

    From `kept` on, a key's elements are still held; `heads` is what is known of each key from now on.
    """

    begin: Int64Array
    end: Int64Array
    key_of_window: Int64Array
    buffered_from: Int64Array
    key_headers: Rows


def expand_ranges(begin: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
    """All elements of some stretches [begin, end), one after the other, and for each the number of its stretch."""
    lengths = end - begin
    range_of_element = np.repeat(np.arange(len(begin)), lengths)
    offset_in_range = np.arange(len(range_of_element)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return begin[range_of_element] + offset_in_range, range_of_element
