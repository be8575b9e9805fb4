"""Which rows of a join differ from those that were shown: found from the members that came and went.

Members that stay meet each other as they did. So only rows of members that came or went are made, and what that
costs follows these and whom they meet, not all rows of a window.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from penstock.pipelines.fold.aggregates.lists import objects
from penstock.pipelines.fold.joined import Pairs, Side, meeting, put_together
from penstock.pipelines.fold.rows import Column
from penstock.pipelines.plan.joins import Join
from penstock.pipelines.state.columns import Ints, Mask

Members: TypeAlias = tuple[Sequence[Any], ...]
"""What a window holds of an input: a list for each field, all of one length."""

Block: TypeAlias = tuple[tuple[Side, Side], Pairs]
"""Some rows: the members that they are of, and which of them stand together."""


@dataclass(frozen=True)
class JoinedRows:
    """Rows of windows: of each the number of its window, and its columns."""

    window: Ints
    columns: Sequence[Column]

    def where(self, chosen: Mask | Ints) -> "JoinedRows":
        """Some of them."""
        return JoinedRows(self.window[chosen], [column[chosen] for column in self.columns])

    def values(self) -> list[tuple[Any, ...]]:
        """Each as one value, which says its window too."""
        return list(zip(self.window.tolist(), *(column.tolist() for column in self.columns), strict=True))


@dataclass(frozen=True)
class Moved:
    """The members of one input, window by window: all before and all now, who went, who stayed, and who came."""

    before: Side
    now: Side
    went: Side
    stayed: Side
    came: Side

    @classmethod
    def of(cls, before: Column, now: Column) -> "Moved":
        """Compare what windows held with what they hold."""
        moves = [moved(*each) for each in zip(before.tolist(), now.tolist(), strict=True)]
        parts = (objects([move[part] for move in moves]) for part in range(3))
        return cls(Side.of(before), Side.of(now), *(Side.of(part) for part in parts))


def moved(before: Members, now: Members) -> tuple[Members, Members, Members]:
    """Who went, who stayed and who came; members that are alike are told apart by their number alone."""
    many, nobody = len(before[0]), ((),) * len(now)
    # Records are appended and never leave, so that what was there is in most cases the beginning of what is.
    if before == tuple(new[:many] for new in now):
        return nobody, before, tuple(new[many:] for new in now)
    old, new = (Counter(zip(*members, strict=True)) for members in (before, now))
    return _members(old - new, nobody), _members(old & new, nobody), _members(new - old, nobody)


def _members(counted: Counter[Any], nobody: Members) -> Members:
    return tuple(zip(*counted.elements(), strict=True)) or nobody


def differences(
    join: Join, before: Sequence[Column], now: Sequence[Column], apart: Mask
) -> tuple[JoinedRows, JoinedRows]:
    """The rows that windows have no more, and those that are new in them.

    Where the two inputs stand `apart` no member of one meets one of the other.
    """
    left, right = (Moved.of(*each) for each in zip(before, now, strict=True))
    of_left = _unmet(join, left, right, apart, of_left=True)
    of_right = _unmet(join, right, left, apart, of_left=False)
    of_pairs = _met(left, right, ~apart) if join.kind not in ("semi", "anti") else ([], [])
    blocks = zip(of_pairs, of_left, of_right, strict=True)
    gone, new = (_rows(join, list(chain.from_iterable(each))) for each in blocks)
    return _without_common(gone, new)


def _met(left: Moved, right: Moved, chosen: Mask) -> tuple[list[Block], list[Block]]:
    """Who met and no longer does, and who meets now, but for those who stayed with each other."""
    gone = ((left.went, right.before), (left.stayed, right.went))
    new = ((left.came, right.now), (left.stayed, right.came))
    one, other = ([(sides, meeting(*sides, chosen)) for sides in each] for each in (gone, new))
    return one, other


def _unmet(
    join: Join, mine: Moved, others: Moved, apart: Mask, *, of_left: bool
) -> tuple[list[Block], list[Block]]:
    """Who was shown by itself and no longer is, and who is now."""
    was, stands = (_alone(join, side, apart, of_left=of_left) for side in (others.before, others.now))

    def block(side: Side, chosen: Mask) -> Block:
        sides = (side, others.came) if of_left else (others.came, side)
        return sides, side.alone(chosen, left=of_left)

    gone = [block(mine.before, was & ~stands), block(mine.went, was & stands)]
    return gone, [block(mine.now, stands & ~was), block(mine.came, was & stands)]


def _alone(join: Join, others: Side, apart: Mask, *, of_left: bool) -> Mask:
    """In which windows the members of a side are shown by themselves."""
    nobody: Mask = (others.count == 0) | apart
    if of_left and join.kind == "semi":
        return ~nobody
    kinds = ("left", "full", "anti") if of_left else ("right", "full")
    return nobody if join.kind in kinds else np.zeros(len(nobody), bool)


def _rows(join: Join, blocks: Sequence[Block]) -> JoinedRows:
    made = [put_together(join, *block) for block in blocks if len(block[1][0])]
    if not made:
        return JoinedRows(np.empty(0, np.int64), [np.empty(0, object) for _ in join.columns])
    window = np.concatenate([origin for origin, _ in made])
    columns = [np.concatenate(parts) for parts in zip(*(columns for _, columns in made), strict=True)]
    order = np.argsort(window, kind="stable")
    return JoinedRows(window, columns).where(order)


def _without_common(gone: JoinedRows, new: JoinedRows) -> tuple[JoinedRows, JoinedRows]:
    """Leave out rows that are gone and new at once: another pair says the same."""
    if not np.isin(gone.window, new.window).any():
        return gone, new
    one, other = gone.values(), new.values()
    common = Counter(one) & Counter(other)
    return gone.where(_beyond(one, common)), new.where(_beyond(other, common))


def _beyond(rows: Sequence[Any], common: Counter[Any]) -> Mask:
    """Which rows are left when each is struck out as often as it is common."""
    left = Counter(common)
    kept = np.ones(len(rows), bool)
    for number, row in enumerate(rows):
        if left[row] > 0:
            left[row] -= 1
            kept[number] = False
    return kept
