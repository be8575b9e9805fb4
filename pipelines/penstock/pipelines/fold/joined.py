"""The rows of a join: what the members that windows hold come to when they are put together, for all at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

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

Pairs: TypeAlias = tuple[Ints, Ints, Ints]
"""Of each row the number of its window, and of the member of either side."""


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


def joined(join: Join, left: Column, right: Column, apart: Mask) -> tuple[Ints, list[Column]]:
    """The rows of each window, one after the other: the number of its window, and the columns.

    What a window holds of an input is a list for each field that is taken of it, all of one length. Where the two
    stand `apart` no member of one meets one of the other.
    """
    sides = Side.of(left), Side.of(right)
    return put_together(join, sides, _pairs(join, *sides, apart))


def put_together(join: Join, sides: tuple["Side", "Side"], pairs: Pairs) -> tuple[Ints, list[Column]]:
    """Rows in the order of their windows: the window of each, and what its pair of members says."""
    origin, one, other = pairs
    order = np.argsort(origin, kind="stable")
    of = {join.left: (sides[0], one[order]), join.right: (sides[1], other[order])}
    columns = [
        of[each.input][0].values(join.fields_of(each.input).index(each.field), of[each.input][1])
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
        held = column.tolist()
        count = np.fromiter((len(lists[0]) for lists in held), np.int64, len(held))
        return cls(held, count, np.cumsum(count) - count)

    def where(self, chosen: Mask) -> tuple[Ints, Ints]:
        """The members of some windows: the window's number, and the member's."""
        number = np.repeat(np.arange(len(self.count)), self.count)
        at = np.flatnonzero(chosen[number])
        return number[at], at

    def alone(self, chosen: Mask, *, left: bool = True) -> Pairs:
        """The rows of members that stand by themselves, in some windows."""
        window, at = self.where(chosen)
        nobody = np.full(len(at), NOBODY)
        return (window, at, nobody) if left else (window, nobody, at)

    def values(self, field: int, at: Ints) -> Column:
        """A field of some members; None where there is nobody."""
        flat = objects([*chain.from_iterable(lists[field] for lists in self.held), None])
        return flat[at]  # NOBODY is the last


def _pairs(join: Join, left: Side, right: Side, apart: Mask) -> Pairs:
    """The rows of all windows: the window, and the member of either side."""
    kind = join.kind
    no_right, no_left = (right.count == 0) | apart, (left.count == 0) | apart
    if kind in ("semi", "anti"):
        return left.alone(no_right == (kind == "anti"))
    rows = [meeting(left, right, ~apart)]
    if kind in ("left", "full"):
        rows.append(left.alone(no_right))
    if kind in ("right", "full"):
        rows.append(right.alone(no_left, left=False))
    window, one, other = (np.concatenate(column) for column in zip(*rows, strict=True))
    return window, one, other


def meeting(left: Side, right: Side, chosen: Mask) -> Pairs:
    """Every member of one side with every one of the other, in some windows."""
    many = np.where(chosen, left.count * right.count, 0)
    window = np.repeat(np.arange(len(many)), many)
    nth = np.arange(len(window)) - np.repeat(np.cumsum(many) - many, many)
    one = left.begin[window] + nth // np.maximum(right.count[window], 1)
    other = right.begin[window] + nth % np.maximum(right.count[window], 1)
    return window, one, other
