"""Parallel list columns: one column for each component of an entry."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import isnan
from typing import Any, TypeAlias

import numpy as np

from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.state.header_columns import Int64Array

ListEntry: TypeAlias = tuple[Any, ...]
EntryReducer: TypeAlias = Callable[[list[ListEntry]], Sequence[ListEntry]]


@dataclass(frozen=True)
class ListMerger:
    """Concatenates entries; `reduce_entries` sorts them and drops those that are not needed."""

    names: tuple[str, ...]
    reduce_entries: EntryReducer = field(compare=False)

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Merge incoming entries into each window."""
        incoming_entries: dict[int, list[ListEntry]] = {}
        for window, entries in zip(windows.tolist(), iterate_entries(incoming, self.names), strict=True):
            incoming_entries.setdefault(window, []).extend(entries)
        touched_windows = np.fromiter(incoming_entries, np.int64, len(incoming_entries))
        stored_rows = Rows({name: rows[name][touched_windows] for name in self.names}, len(touched_windows))
        for (window, new), old in zip(
            incoming_entries.items(), iterate_entries(stored_rows, self.names), strict=True
        ):
            reduced = self.reduce_entries([*old, *new])
            columns = zip(*reduced, strict=True) if reduced else repeat((), len(self.names))
            for name, column in zip(self.names, columns, strict=True):
                rows[name][window] = column


@dataclass(frozen=True)
class AppendMerger:
    """Appends entries in order of arrival and keeps all of them."""

    names: tuple[str, ...]

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Append incoming entries: vectorized for empty windows, window by window for others."""
        filled_rows = np.flatnonzero(incoming[self.names[0]].astype(bool))
        window_of_row = windows[filled_rows]
        touched_windows, first, counts = np.unique(window_of_row, return_index=True, return_counts=True)
        is_direct = (counts == 1) & ~rows[self.names[0]][touched_windows].astype(bool)
        remaining_rows = np.flatnonzero(~is_direct[np.searchsorted(touched_windows, window_of_row)]).tolist()
        for name in self.names:
            stored, incoming_lists = rows[name], incoming[name][filled_rows]
            stored[touched_windows[is_direct]] = incoming_lists[first[is_direct]]
            additions: dict[int, list[Any]] = {}
            for row in remaining_rows:
                additions.setdefault(int(window_of_row[row]), []).extend(incoming_lists[row])
            for window, entries in additions.items():
                stored[window] = (*(stored[window] or ()), *entries)


def iterate_entries(rows: Rows, names: Sequence[str]) -> Iterator[Iterator[ListEntry]]:
    """Yield the entries of each row."""
    for lists in zip(*(rows[name].tolist() for name in names), strict=True):
        yield zip(*(values or () for values in lists), strict=True)


def to_output_lists(rows: Rows, name: str) -> NumpyColumn:
    """Return lists as a pane shows them: empty, not null, without entries."""
    return to_object_column([entries or () for entries in rows[name].tolist()])


def to_object_column(values: Sequence[Any]) -> NumpyColumn:
    """Return an object column. numpy does not unpack the values."""
    return np.fromiter(values, dtype=object, count=len(values))


def to_single_entry_lists(values: Sequence[Any], is_chosen: Sequence[bool]) -> NumpyColumn:
    """Return a list of one entry for each chosen element, an empty list for the others."""
    return to_object_column(
        [(value,) if is_present else () for value, is_present in zip(values, is_chosen, strict=True)]
    )


def nan_last_key(value: Any) -> tuple[bool, Any]:
    """Sort key that puts NaN above every number."""
    return (True, 0) if isinstance(value, float) and isnan(value) else (False, value)


def nulls_first_key(value: Any) -> tuple[bool, Any]:
    """Sort key that puts null first and compares lists by their values."""
    if isinstance(value, tuple):
        return True, (False, tuple(map(nulls_first_key, value)))
    return value is not None, value is not None and nan_last_key(value)
