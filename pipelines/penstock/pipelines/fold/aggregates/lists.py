"""Lists side by side, one column for each thing that is known of an entry."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import isnan
from typing import Any, TypeAlias

import numpy as np

from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.state.columns import Ints

Entry: TypeAlias = tuple[Any, ...]
Keep: TypeAlias = Callable[[list[Entry]], Sequence[Entry]]


@dataclass(frozen=True)
class Lists:
    """Entries join; `keep` puts them in order, and leaves out what need not be kept."""

    names: tuple[str, ...]
    keep: Keep = field(compare=False)

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Join what came to what is held, window by window."""
        came: dict[int, list[Entry]] = {}
        for window, entries in zip(windows.tolist(), entries_of(incoming, self.names), strict=True):
            came.setdefault(window, []).extend(entries)
        touched = np.fromiter(came, np.int64, len(came))
        held = Rows({name: rows[name][touched] for name in self.names}, len(touched))
        for (window, new), old in zip(came.items(), entries_of(held, self.names), strict=True):
            kept = self.keep([*old, *new])
            columns = zip(*kept, strict=True) if kept else repeat((), len(self.names))
            for name, column in zip(self.names, columns, strict=True):
                rows[name][window] = column


@dataclass(frozen=True)
class Appended:
    """Entries join in the order in which they come, and all of them are kept."""

    names: tuple[str, ...]

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Append what came to what is held: at once where a window held nothing, window by window where it did."""
        there = np.flatnonzero(incoming[self.names[0]].astype(bool))
        owner = windows[there]
        touched, first, many = np.unique(owner, return_index=True, return_counts=True)
        at_once = (many == 1) & ~rows[self.names[0]][touched].astype(bool)
        rest = np.flatnonzero(~at_once[np.searchsorted(touched, owner)]).tolist()
        for name in self.names:
            held, came = rows[name], incoming[name][there]
            held[touched[at_once]] = came[first[at_once]]
            more: dict[int, list[Any]] = {}
            for number in rest:
                more.setdefault(int(owner[number]), []).extend(came[number])
            for window, entries in more.items():
                held[window] = (*(held[window] or ()), *entries)


def entries_of(rows: Rows, names: Sequence[str]) -> Iterator[Iterator[Entry]]:
    """The entries of each row."""
    for lists in zip(*(rows[name].tolist() for name in names), strict=True):
        yield zip(*(each or () for each in lists), strict=True)


def shown(rows: Rows, name: str) -> Column:
    """A list as a pane shows it: without entries it is empty, not null."""
    return objects([entries or () for entries in rows[name].tolist()])


def objects(values: Sequence[Any]) -> Column:
    """A column of Python's own values, none of which numpy takes apart."""
    return np.fromiter(values, dtype=object, count=len(values))


def singles(values: Sequence[Any], chosen: Sequence[bool]) -> Column:
    """A list of one entry for each chosen element, an empty one for the others."""
    return objects([(value,) if there else () for value, there in zip(values, chosen, strict=True)])


def rank(value: Any) -> tuple[bool, Any]:
    """What values are ordered by: NaN is greater than every number."""
    return (True, 0) if isinstance(value, float) and isnan(value) else (False, value)


def place(value: Any) -> tuple[bool, Any]:
    """Where a value stands among others of its kind: null is the first, and a list goes by what is in it."""
    if isinstance(value, tuple):
        return True, (False, tuple(map(place, value)))
    return value is not None, value is not None and rank(value)
