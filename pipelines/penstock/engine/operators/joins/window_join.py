"""The rows of a join: what the members that windows hold come to when they are put together, for all at once."""

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
"""Stands for the element that an outer join did not find."""

MemberPairs: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]
"""Of each row the number of its window, and of the member of either side."""


def expand_join_rows(
    stage: CompiledStage, headers: PaneHeaders, values: list[NumpyColumn]
) -> tuple[PaneHeaders, list[NumpyColumn], Int64Array]:
    """Windows with the values that rows have, and for each row the number of its window.

    There is a row for each window, or for a join as many as there are in it.
    """
    join = stage.plan.join
    if join is None:
        return headers, values, np.arange(len(headers.timing))
    left, right = values
    origin, columns = join_windows(join, left, right, find_null_keys(stage, headers.window_table))
    return headers.take(origin), columns, origin


def find_null_keys(stage: CompiledStage, window_table: pa.Table) -> BoolArray:
    """Which keys have a null in them: as in SQL, they meet nobody."""
    null_masks = [window_table.column(field.name).is_null().to_numpy() for field in stage.key]
    return (
        np.asarray(np.logical_or.reduce(null_masks), bool)
        if null_masks
        else np.zeros(window_table.num_rows, bool)
    )


def join_windows(
    join: Join, left: NumpyColumn, right: NumpyColumn, null_key_mask: BoolArray
) -> tuple[Int64Array, list[NumpyColumn]]:
    """The rows of each window, one after the other: the number of its window, and the columns.

    What a window holds of an input is a list for each field that is taken of it, all of one length. Where the two
    stand `apart` no member of one meets one of the other.
    """
    sides = JoinSide.from_column(left), JoinSide.from_column(right)
    return assemble_rows(join, sides, _pair_members(join, *sides, null_key_mask))


def assemble_rows(
    join: Join, sides: tuple["JoinSide", "JoinSide"], pairs: MemberPairs
) -> tuple[Int64Array, list[NumpyColumn]]:
    """Rows in the order of their windows: the window of each, and what its pair of members says."""
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
        """The members that windows hold."""
        members = column.tolist()
        counts = np.fromiter((len(lists[0]) for lists in members), np.int64, len(members))
        return cls(members, counts, np.cumsum(counts) - counts)

    def select_members(self, window_mask: BoolArray) -> tuple[Int64Array, Int64Array]:
        """The members of some windows: the window's number, and the member's."""
        window_of_member = np.repeat(np.arange(len(self.counts)), self.counts)
        selected = np.flatnonzero(window_mask[window_of_member])
        return window_of_member[selected], selected

    def unmatched_rows(self, window_mask: BoolArray, *, left: bool = True) -> MemberPairs:
        """The rows of members that stand by themselves, in some windows."""
        window, members = self.select_members(window_mask)
        no_members = np.full(len(members), NO_MEMBER)
        return (window, members, no_members) if left else (window, no_members, members)

    def field_values(self, field: int, members: Int64Array) -> NumpyColumn:
        """A field of some members; None where there is nobody."""
        flat_values = to_object_column([*chain.from_iterable(lists[field] for lists in self.members), None])
        return flat_values[members]  # NOBODY is the last


def _pair_members(join: Join, left: JoinSide, right: JoinSide, null_key_mask: BoolArray) -> MemberPairs:
    """The rows of all windows: the window, and the member of either side."""
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
    """Every member of one side with every one of the other, in some windows."""
    pair_counts = np.where(window_mask, left.counts * right.counts, 0)
    window = np.repeat(np.arange(len(pair_counts)), pair_counts)
    pair_number = np.arange(len(window)) - np.repeat(np.cumsum(pair_counts) - pair_counts, pair_counts)
    left_members = left.offsets[window] + pair_number // np.maximum(right.counts[window], 1)
    right_members = right.offsets[window] + pair_number % np.maximum(right.counts[window], 1)
    return window, left_members, right_members
