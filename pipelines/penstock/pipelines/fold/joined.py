"""The rows of a join: what the members that windows hold come to when they are put together, for all at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.aggregates.lists import objects
from penstock.pipelines.fold.panes import About
from penstock.pipelines.fold.rows import Column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.joins import Join
from penstock.pipelines.state.columns import Ints, Mask

NOBODY = -1
"""Stands for the element that an outer join did not find."""


def spread(stage: ReadyStage, about: About, values: list[Column]) -> tuple[About, list[Column], Ints]:
    """Windows with the values that rows have, and for each row the number of its window.

    There is a row for each window, or for a join as many as there are in it.
    """
    join = stage.plan.join
    if join is None:
        return about, values, np.arange(len(about.timing))
    left, right = values
    origin, columns = joined(join, left, right, keyless(stage, about.names))
    return about.take(origin), columns, origin


def keyless(stage: ReadyStage, names: pa.Table) -> Mask:
    """Which keys have a null in them: as in SQL, they meet nobody."""
    nulls = [names.column(field.name).is_null().to_numpy() for field in stage.key]
    return np.asarray(np.logical_or.reduce(nulls), bool) if nulls else np.zeros(names.num_rows, bool)


def same_rows(
    join: Join, now: Sequence[Column], before: Sequence[Column], same: Sequence[Mask], apart: Mask
) -> Mask:
    """Whether windows have the rows that they had before; `same` tells it of the members of either side."""
    left, right = _sides_shown(join, _counts(now[0]), _counts(now[1]), apart)
    left_before, right_before = _sides_shown(join, _counts(before[0]), _counts(before[1]), apart)
    alike = (left == left_before) & (right == right_before)
    return np.asarray(alike & (same[0] | ~left) & (same[1] | ~right), bool)


def _sides_shown(join: Join, left: Ints, right: Ints, apart: Mask) -> tuple[Mask, Mask]:
    """Whether the rows of windows follow from the members of their left, and from those of their right."""
    met = (left > 0) & (right > 0) & ~apart
    if join.kind in ("semi", "anti"):
        return (left > 0) & (met == (join.kind == "semi")), np.zeros(len(left), bool)
    return (
        met | ((left > 0) & np.isin(join.kind, ("left", "full"))),
        met | ((right > 0) & np.isin(join.kind, ("right", "full"))),
    )


def joined(join: Join, left: Column, right: Column, apart: Mask) -> tuple[Ints, list[Column]]:
    """The rows of each window, one after the other: the number of its window, and the columns.

    What a window holds of an input is a list for each field that is taken of it, all of one length. Where the two
    stand `apart` no member of one meets one of the other.
    """
    sides = {join.left: Side.of(left), join.right: Side.of(right)}
    origin, one, other = _pairs(join, sides[join.left], sides[join.right], apart)
    order = np.argsort(origin, kind="stable")
    chosen = {join.left: one[order], join.right: other[order]}
    columns = [
        sides[each.input].values(join.fields_of(each.input).index(each.field), chosen[each.input])
        for each in join.columns
    ]
    return origin[order], columns


@dataclass(frozen=True)
class Side:
    """The members of one input, window by window, in one sequence."""

    held: Sequence[tuple[Sequence[object], ...]]
    count: Ints
    begin: Ints

    @classmethod
    def of(cls, column: Column) -> "Side":
        """The members that windows hold."""
        held, count = column.tolist(), _counts(column)
        return cls(held, count, np.cumsum(count) - count)

    def where(self, chosen: Mask) -> tuple[Ints, Ints]:
        """The members of some windows: the window's number, and the member's."""
        number = np.repeat(np.arange(len(self.count)), self.count)
        at = np.flatnonzero(chosen[number])
        return number[at], at

    def values(self, field: int, at: Ints) -> Column:
        """A field of some members; None where there is nobody."""
        flat = objects([*chain.from_iterable(lists[field] for lists in self.held), None])
        return flat[at]  # NOBODY is the last


def _counts(column: Column) -> Ints:
    """How many members windows hold."""
    return np.fromiter((len(lists[0]) for lists in column.tolist()), np.int64, len(column))


def _pairs(join: Join, left: Side, right: Side, apart: Mask) -> tuple[Ints, Ints, Ints]:
    """The rows of all windows: the window, and the member of either side."""
    kind = join.kind
    no_right, no_left = (right.count == 0) | apart, (left.count == 0) | apart
    if kind in ("semi", "anti"):
        window, one = left.where(no_right == (kind == "anti"))
        return window, one, np.full(len(one), NOBODY)
    many = np.where(apart, 0, left.count * right.count)
    window = np.repeat(np.arange(len(many)), many)
    nth = np.arange(len(window)) - np.repeat(np.cumsum(many) - many, many)
    one = left.begin[window] + nth // np.maximum(right.count[window], 1)
    other = right.begin[window] + nth % np.maximum(right.count[window], 1)
    if kind in ("left", "full"):
        alone, member = left.where(no_right)
        nobody = np.full(len(member), NOBODY)
        window, one, other = np.append(window, alone), np.append(one, member), np.append(other, nobody)
    if kind in ("right", "full"):
        alone, member = right.where(no_left)
        nobody = np.full(len(member), NOBODY)
        window, one, other = np.append(window, alone), np.append(one, nobody), np.append(other, member)
    return window, one, other
