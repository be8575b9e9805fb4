"""Mergers that numpy vectorizes over all windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.errors import SumOverflowError
from penstock.engine.state.header_columns import BoolArray, Int64Array

BIGINT_LIMIT = 2**63


@dataclass(frozen=True)
class SumMerger:
    """Adds numbers; exact except for floats. The column holds values below `exclusive_limit`."""

    name: str
    exclusive_limit: int = BIGINT_LIMIT

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Add incoming values.

        Raise SumOverflowError, and leave the rows unchanged, if a sum exceeds the limit.
        """
        sums, addends = rows[self.name], incoming[self.name]
        if sums.dtype.kind == "f" or _cannot_overflow(sums, addends):
            np.add.at(sums, windows, addends)
            return
        exact_sums = sums.astype(object)
        np.add.at(exact_sums, windows, addends.astype(object))
        if any(not -self.exclusive_limit <= total < self.exclusive_limit for total in exact_sums):
            raise SumOverflowError(self.name.removesuffix("_sum"))
        rows[self.name] = exact_sums.astype(sums.dtype)


def _cannot_overflow(sums: NumpyColumn, addends: NumpyColumn) -> bool:
    """Return whether no sum of these can come near the 64-bit limit, in any order."""
    if sums.dtype.kind not in "iu":
        return False
    max_magnitude = np.abs(sums.astype(np.float64)).max(initial=0) + np.abs(addends.astype(np.float64)).sum()
    return bool(max_magnitude < BIGINT_LIMIT // 2)


@dataclass(frozen=True)
class MinMaxMerger:
    """Keeps the least or the greatest value. `count_column` holds the number of values.

    NaN is greater than every number, as in Spark. The count part must be merged after this one.
    """

    name: str
    count_column: str
    is_max: bool

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Replace values with better ones."""
        has_value = incoming[self.count_column] > 0
        target, values = rows[self.name], incoming[self.name][has_value]
        _set_first_values(target, rows[self.count_column] > 0, windows[has_value], values)
        # fmin ignores NaN, maximum propagates it.
        choose: Any = np.maximum if self.is_max else np.fmin
        choose.at(target, windows[has_value], values)


@dataclass(frozen=True)
class FirstLastMerger:
    """Keeps the value that is first, or last, by `order_columns`.

    `value_columns` are replaced with it. Only rows with a positive `count_column` count, and the count part
    must be merged after this one. Of equal rows, the stored one is the earlier.
    """

    order_columns: tuple[str, ...]
    value_columns: tuple[str, ...]
    count_column: str
    is_last: bool

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Replace stored values with earlier (or later) ones."""
        valued_rows = np.flatnonzero(incoming[self.count_column] > 0)
        touched_windows = np.unique(windows[valued_rows])
        filled_windows = touched_windows[rows[self.count_column][touched_windows] > 0]
        window_of_entry = np.concatenate([filled_windows, windows[valued_rows]])
        order_values = [
            np.concatenate([rows[name][filled_windows], incoming[name][valued_rows]])
            for name in self.order_columns
        ]
        chosen = _find_edges(window_of_entry, order_values, is_last=self.is_last)
        replacing = chosen[chosen >= len(filled_windows)]
        source = valued_rows[replacing - len(filled_windows)]
        for name in (*self.order_columns, *self.value_columns):
            rows[name][window_of_entry[replacing]] = incoming[name][source]


def _set_first_values(
    target: NumpyColumn, is_filled: BoolArray, windows: Int64Array, values: NumpyColumn
) -> None:
    """Give windows without a value their first incoming value."""
    touched_windows, positions = np.unique(windows, return_index=True)
    is_new = ~is_filled[touched_windows]
    target[touched_windows[is_new]] = values[positions[is_new]]


def _find_edges(
    window_of_entry: Int64Array, order_values: Sequence[NumpyColumn], *, is_last: bool
) -> Int64Array:
    """Return, for each window, the position of its first (or last) entry by the order columns."""
    order = np.lexsort((*(_to_sortable(column) for column in reversed(order_values)), window_of_entry))
    is_boundary = window_of_entry[order][1:] != window_of_entry[order][:-1]
    is_edge = np.append(is_boundary, True) if is_last else np.append(True, is_boundary)
    chosen: Int64Array = order[is_edge[: len(order)]]
    return chosen


def _to_sortable(column: NumpyColumn) -> NumpyColumn:
    """Return numbers unchanged, other values as their rank."""
    if column.dtype != object:
        return column
    _, ranks = np.unique(column, return_inverse=True)
    return ranks
