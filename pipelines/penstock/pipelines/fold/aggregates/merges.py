"""The merges that numpy does for all windows at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.state.columns import Ints, Mask


@dataclass(frozen=True)
class Added:
    """Numbers add up."""

    name: str

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Add what came."""
        np.add.at(rows[self.name], windows, incoming[self.name])


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest stands, of those in which `present`, the number of values, is above zero.

    NaN is greater than every number, as in Spark. The part that counts values must be merged after this one.
    """

    name: str
    present: str
    greatest: bool

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Put the better in place of the worse."""
        there = incoming[self.present] > 0
        target, came = rows[self.name], incoming[self.name][there]
        _begin(target, rows[self.present] > 0, windows[there], came)
        # fmin passes over NaN, maximum does not.
        choose: Any = np.maximum if self.greatest else np.fmin
        choose.at(target, windows[there], came)


@dataclass(frozen=True)
class Foremost:
    """Of several values the one that comes first, or last, in the order of the columns `by`.

    `carried` go with it. Only those count in which `present` is above zero; the part that counts values must be
    merged after this one. Of equals the one that was there before is the earlier.
    """

    by: tuple[str, ...]
    carried: tuple[str, ...]
    present: str
    last: bool

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Put what comes earlier (or later) in place of what is held."""
        there = np.flatnonzero(incoming[self.present] > 0)
        seen = np.unique(windows[there])
        held = seen[rows[self.present][seen] > 0]
        owner = np.concatenate([held, windows[there]])
        by = [np.concatenate([rows[name][held], incoming[name][there]]) for name in self.by]
        chosen = _edges(owner, by, last=self.last)
        new = chosen[chosen >= len(held)]
        source = there[new - len(held)]
        for name in (*self.by, *self.carried):
            rows[name][owner[new]] = incoming[name][source]


def _begin(target: Column, filled: Mask, windows: Ints, values: Column) -> None:
    """Give windows that held nothing the first value that came."""
    seen, positions = np.unique(windows, return_index=True)
    new = ~filled[seen]
    target[seen[new]] = values[positions[new]]


def _edges(owner: Ints, by: Sequence[Column], *, last: bool) -> Ints:
    """For each owner the position of its first, or last, in the order of the columns."""
    order = np.lexsort((*(_sortable(column) for column in reversed(by)), owner))
    changes = owner[order][1:] != owner[order][:-1]
    edge = np.append(changes, True) if last else np.append(True, changes)
    chosen: Ints = order[edge[: len(order)]]
    return chosen


def _sortable(column: Column) -> Column:
    """Numbers as they are; for anything else its rank."""
    if column.dtype != object:
        return column
    _, ranks = np.unique(column, return_inverse=True)
    return ranks
