"""Build the rows of window joins from the members of each window, vectorized over all windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.list_columns import to_object_column
from penstock.engine.columnar import NumpyColumn
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.pane_rows import PaneHeaders
from penstock.engine.plan.joins import Join
from penstock.engine.state.header_columns import BoolArray, Int64Array

NO_MEMBER = -1
"""Marks the missing side of an outer join row."""

MemberPairs: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]
"""Of each row: the number of its window, of its left member and of its right member."""


def expand_join_rows(
    stage: CompiledStage, headers: PaneHeaders, values: list[NumpyColumn]
) -> tuple[PaneHeaders, list[NumpyColumn], Int64Array]:
    """Return the headers and values of rows, and for each row the number of its window.

    There is one row per window; for a join, one per joined row.
    """
    join = stage.plan.join
    if join is None:
        return headers, values, np.arange(len(headers.timing))
    left, right = values
    origin, columns = join_windows(join, left, right, find_null_keys(stage, headers.window_table))
    return headers.take(origin), columns, origin


def find_null_keys(stage: CompiledStage, window_table: pa.Table) -> BoolArray:
    """Return which keys contain a null. As in SQL, they match nothing."""
    null_masks = [window_table.column(field.name).is_null().to_numpy() for field in stage.key]
    return (
        np.asarray(np.logical_or.reduce(null_masks), bool)
        if null_masks
        else np.zeros(window_table.num_rows, bool)
    )


def join_windows(
    join: Join, left: NumpyColumn, right: NumpyColumn, null_key_mask: BoolArray
) -> tuple[Int64Array, list[NumpyColumn]]:
    """Return the rows of all windows in order: the window number of each, and the columns.

    The members of an input in a window are a list for each selected field, all of one length. In the windows
    of `null_key_mask`, members of the two inputs never match.
    """
    sides = JoinSide.from_column(left), JoinSide.from_column(right)
    return assemble_rows(join, sides, _pair_members(join, *sides, null_key_mask))


def assemble_rows(
    join: Join, sides: tuple["JoinSide", "JoinSide"], pairs: MemberPairs
) -> tuple[Int64Array, list[NumpyColumn]]:
    """Return rows in window order: the window of each, and the columns of its member pair."""
    origin, left_members, right_members = pairs
    order = np.argsort(origin, kind="stable")
    members_by_input = {
        join.left: (sides[0], left_members[order]),
        join.right: (sides[1], right_members[order]),
    }
    columns = [
        members_by_input[join_column.input][0].field_values(
            join.fields_from(join_column.input).index(join_column.field),
            members_by_input[join_column.input][1],
        )
        for join_column in join.columns
    ]
    return origin[order], columns


@dataclass(frozen=True)
class JoinSide:
    """The members of one input, window by window, in one sequence."""

    members: Sequence[tuple[Sequence[object], ...]]
    counts: Int64Array
    offsets: Int64Array

    @classmethod
    def from_column(cls, column: NumpyColumn) -> "JoinSide":
        """Read the members from a column of windows."""
        members = column.tolist()
        counts = np.fromiter((len(lists[0]) for lists in members), np.int64, len(members))
        return cls(members, counts, np.cumsum(counts) - counts)

    def select_members(self, window_mask: BoolArray) -> tuple[Int64Array, Int64Array]:
        """Return the members of the selected windows: window number and member number."""
        window_of_member = np.repeat(np.arange(len(self.counts)), self.counts)
        selected = np.flatnonzero(window_mask[window_of_member])
        return window_of_member[selected], selected

    def unmatched_rows(self, window_mask: BoolArray, *, left: bool = True) -> MemberPairs:
        """Return rows for the members of the selected windows, without a partner."""
        window, members = self.select_members(window_mask)
        no_members = np.full(len(members), NO_MEMBER)
        return (window, members, no_members) if left else (window, no_members, members)

    def field_values(self, field: int, members: Int64Array) -> NumpyColumn:
        """Return a field of some members; None for a missing member."""
        flat_values = to_object_column([*chain.from_iterable(lists[field] for lists in self.members), None])
        return flat_values[members]  # NO_MEMBER (-1) indexes the last value


def _pair_members(join: Join, left: JoinSide, right: JoinSide, null_key_mask: BoolArray) -> MemberPairs:
    """Return the rows of all windows: window, left member and right member."""
    kind = join.kind
    lacks_right, lacks_left = (right.counts == 0) | null_key_mask, (left.counts == 0) | null_key_mask
    if kind in ("semi", "anti"):
        return left.unmatched_rows(lacks_right == (kind == "anti"))
    rows = [cross_members(left, right, ~null_key_mask)]
    if kind in ("left", "full"):
        rows.append(left.unmatched_rows(lacks_right))
    if kind in ("right", "full"):
        rows.append(right.unmatched_rows(lacks_left, left=False))
    window, left_members, right_members = (np.concatenate(column) for column in zip(*rows, strict=True))
    return window, left_members, right_members


def cross_members(left: JoinSide, right: JoinSide, window_mask: BoolArray) -> MemberPairs:
    """Return all pairs of left and right members in the selected windows."""
    pair_counts = np.where(window_mask, left.counts * right.counts, 0)
    window = np.repeat(np.arange(len(pair_counts)), pair_counts)
    pair_number = np.arange(len(window)) - np.repeat(np.cumsum(pair_counts) - pair_counts, pair_counts)
    left_members = left.offsets[window] + pair_number // np.maximum(right.counts[window], 1)
    right_members = right.offsets[window] + pair_number % np.maximum(right.counts[window], 1)
    return window, left_members, right_members
