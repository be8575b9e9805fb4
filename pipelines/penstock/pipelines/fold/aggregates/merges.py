"""The merges that numpy does for all windows at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.pipelines.errors import SumOverflowError
from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.state.columns import Ints, Mask

BIGINT = 2**63


@dataclass(frozen=True)
class Added:
    """Numbers add up, exactly but for floating ones; `room` is the least number that the column cannot hold."""

    name: str
    room: int = BIGINT

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Add what came. Raises SumOverflowError where a sum has no room, and leaves the rows as they were."""
        held, came = rows[self.name], incoming[self.name]
        if held.dtype.kind == "f" or _stays_small(held, came):
            np.add.at(held, windows, came)
            return
        exact = held.astype(object)
        np.add.at(exact, windows, came.astype(object))
        if any(not -self.room <= total < self.room for total in exact):
            raise SumOverflowError(self.name.removesuffix("_sum"))
        rows[self.name] = exact.astype(held.dtype)


def _stays_small(held: Column, came: Column) -> bool:
    """Whether no sum of these can be near the end of what 64 bits hold, in whatever order they are added."""
    if held.dtype.kind not in "iu":
        return False
    most = np.abs(held.astype(np.float64)).max(initial=0) + np.abs(came.astype(np.float64)).sum()
    return bool(most < BIGINT // 2)


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
