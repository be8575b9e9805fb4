"""The rows of a join: what the members that a window holds come to when they are put together."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from penstock.pipelines.fold.aggregates.lists import objects
from penstock.pipelines.fold.panes import About
from penstock.pipelines.fold.rows import Column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.joins import Join
from penstock.pipelines.state.columns import Ints

Row = tuple[Any, ...]


def spread(stage: ReadyStage, about: About, values: list[Column]) -> tuple[About, list[Column], Ints]:
    """Windows with the values that rows have, and for each row the number of its window.

    There is a row for each window, or for a join as many as there are in it.
    """
    join = stage.plan.join
    if join is None:
        return about, values, np.arange(len(about.timing))
    origin, columns = joined(join, *values)
    return about.take(origin), columns, origin


def joined(join: Join, left: Column, right: Column) -> tuple[Ints, list[Column]]:
    """The rows of each window, one after the other: the number of its window, and the columns."""
    rows = [list(rows_of(join, *members)) for members in zip(left.tolist(), right.tolist(), strict=True)]
    origin = np.repeat(np.arange(len(rows)), [len(found) for found in rows])
    both = list(chain.from_iterable(rows))
    place = _places(join)
    return origin, [objects([row[side][at] for row in both]) for side, at in place]


def rows_of(join: Join, left: Sequence[Row], right: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs of elements; where one is missing, a row of nulls stands for it."""
    kind = join.kind
    nothing = [(None,) * max(len(join.fields_of(name)), 1) for name in (join.left, join.right)]
    if kind in ("semi", "anti"):
        yield from ((row, nothing[1]) for row in left if bool(right) == (kind == "semi"))
    elif left and right:
        yield from ((one, other) for one in left for other in right)
    elif left and kind in ("left", "full"):
        yield from ((row, nothing[1]) for row in left)
    elif right and kind in ("right", "full"):
        yield from ((nothing[0], row) for row in right)


def _places(join: Join) -> list[tuple[int, int]]:
    """For each column: the side that it is of, and where it stands in that side's rows."""
    sides = {join.left: 0, join.right: 1}
    return [(sides[each.input], join.fields_of(each.input).index(each.field)) for each in join.columns]
