"""Compute which rows of a window join changed, from the members that were added and removed.

Pairs of unchanged members do not change. Only rows of added or removed members are built, so the cost depends
on these and their partners, not on all rows of the window.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from penstock.engine.aggregates.list_columns import to_object_column
from penstock.engine.columnar import NumpyColumn
from penstock.engine.operators.joins.window_join import JoinSide, MemberPairs, assemble_rows, cross_members
from penstock.engine.plan.joins import Join
from penstock.engine.state.header_columns import BoolArray, Int64Array

WindowMembers: TypeAlias = tuple[Sequence[Any], ...]
"""The members of one input in a window: a list for each field, all of one length."""

RowBlock: TypeAlias = tuple[tuple[JoinSide, JoinSide], MemberPairs]
"""A block of rows: the two sides, and the pairs of their members."""


@dataclass(frozen=True)
class JoinedRows:
    """Joined rows: the window number of each, and its columns."""

    window: Int64Array
    columns: Sequence[NumpyColumn]

    def where(self, selection: BoolArray | Int64Array) -> "JoinedRows":
        """Return the selected rows."""
        return JoinedRows(self.window[selection], [column[selection] for column in self.columns])

    def to_tuples(self) -> list[tuple[Any, ...]]:
        """Return each row as one hashable tuple that includes its window."""
        return list(zip(self.window.tolist(), *(column.tolist() for column in self.columns), strict=True))


@dataclass(frozen=True)
class MemberDiff:
    """The members of one input, window by window: before, now, removed, unchanged and added."""

    before: JoinSide
    current: JoinSide
    removed: JoinSide
    unchanged: JoinSide
    added: JoinSide

    @classmethod
    def compare(cls, before: NumpyColumn, current: NumpyColumn) -> "MemberDiff":
        """Compare the members of each window before and now."""
        diffs = [
            diff_members(*window_pair) for window_pair in zip(before.tolist(), current.tolist(), strict=True)
        ]
        parts = (to_object_column([diff[part] for diff in diffs]) for part in range(3))
        return cls(
            JoinSide.from_column(before),
            JoinSide.from_column(current),
            *(JoinSide.from_column(part) for part in parts),
        )


def diff_members(
    before: WindowMembers, current: WindowMembers
) -> tuple[WindowMembers, WindowMembers, WindowMembers]:
    """Return the removed, unchanged and added members. Equal members are distinguished only by their count."""
    count_before, no_members = len(before[0]), ((),) * len(current)
    # Without retractions members are only appended, so the old ones are usually a prefix of the current ones.
    if before == tuple(new[:count_before] for new in current):
        return no_members, before, tuple(new[count_before:] for new in current)
    old, new = (Counter(zip(*members, strict=True)) for members in (before, current))
    return (
        _to_members(old - new, no_members),
        _to_members(old & new, no_members),
        _to_members(new - old, no_members),
    )


def _to_members(counted: Counter[Any], no_members: WindowMembers) -> WindowMembers:
    return tuple(zip(*counted.elements(), strict=True)) or no_members


def diff_rows(
    join: Join, before: Sequence[NumpyColumn], current: Sequence[NumpyColumn], null_key_mask: BoolArray
) -> tuple[JoinedRows, JoinedRows]:
    """Return the removed and the added rows of each window.

    In the windows of `null_key_mask`, members of the two inputs never match.
    """
    left, right = (MemberDiff.compare(*column_pair) for column_pair in zip(before, current, strict=True))
    left_blocks = _diff_unmatched(join, left, right, null_key_mask, of_left=True)
    right_blocks = _diff_unmatched(join, right, left, null_key_mask, of_left=False)
    pair_blocks = _diff_pairs(left, right, ~null_key_mask) if join.kind not in ("semi", "anti") else ([], [])
    blocks = zip(pair_blocks, left_blocks, right_blocks, strict=True)
    removed, added = (
        _assemble_blocks(join, list(chain.from_iterable(column_pair))) for column_pair in blocks
    )
    return _remove_common(removed, added)


def _diff_pairs(
    left: MemberDiff, right: MemberDiff, window_mask: BoolArray
) -> tuple[list[RowBlock], list[RowBlock]]:
    """Return the removed and the added pairs, without pairs of two unchanged members."""
    removed = ((left.removed, right.before), (left.unchanged, right.removed))
    added = ((left.added, right.current), (left.unchanged, right.added))
    removed_blocks, added_blocks = (
        [(sides, cross_members(*sides, window_mask)) for sides in side_pairs]
        for side_pairs in (removed, added)
    )
    return removed_blocks, added_blocks


def _diff_unmatched(
    join: Join, own: MemberDiff, opposite: MemberDiff, null_key_mask: BoolArray, *, of_left: bool
) -> tuple[list[RowBlock], list[RowBlock]]:
    """Return the removed and the added unmatched rows."""
    was_emitted, is_emitted = (
        _emits_unmatched(join, side, null_key_mask, of_left=of_left)
        for side in (opposite.before, opposite.current)
    )

    def block(side: JoinSide, window_mask: BoolArray) -> RowBlock:
        sides = (side, opposite.added) if of_left else (opposite.added, side)
        return sides, side.unmatched_rows(window_mask, left=of_left)

    removed_blocks = [
        block(own.before, was_emitted & ~is_emitted),
        block(own.removed, was_emitted & is_emitted),
    ]
    return removed_blocks, [
        block(own.current, is_emitted & ~was_emitted),
        block(own.added, was_emitted & is_emitted),
    ]


def _emits_unmatched(join: Join, opposite: JoinSide, null_key_mask: BoolArray, *, of_left: bool) -> BoolArray:
    """Return the windows in which the members of a side are emitted without a partner."""
    has_no_partner: BoolArray = (opposite.counts == 0) | null_key_mask
    if of_left and join.kind == "semi":
        return ~has_no_partner
    outer_kinds = ("left", "full", "anti") if of_left else ("right", "full")
    return has_no_partner if join.kind in outer_kinds else np.zeros(len(has_no_partner), bool)


def _assemble_blocks(join: Join, blocks: Sequence[RowBlock]) -> JoinedRows:
    assembled = [assemble_rows(join, *block) for block in blocks if len(block[1][0])]
    if not assembled:
        return JoinedRows(np.empty(0, np.int64), [np.empty(0, object) for _ in join.columns])
    window = np.concatenate([origin for origin, _ in assembled])
    columns = [np.concatenate(parts) for parts in zip(*(columns for _, columns in assembled), strict=True)]
    order = np.argsort(window, kind="stable")
    return JoinedRows(window, columns).where(order)


def _remove_common(removed: JoinedRows, added: JoinedRows) -> tuple[JoinedRows, JoinedRows]:
    """Drop rows that are both removed and added: another pair has the same values."""
    if not np.isin(removed.window, added.window).any():
        return removed, added
    removed_rows, added_rows = removed.to_tuples(), added.to_tuples()
    common = Counter(removed_rows) & Counter(added_rows)
    return removed.where(_is_not_common(removed_rows, common)), added.where(
        _is_not_common(added_rows, common)
    )


def _is_not_common(rows: Sequence[Any], common: Counter[Any]) -> BoolArray:
    """Return which rows remain when each is removed as often as it is common."""
    remaining = Counter(common)
    is_kept = np.ones(len(rows), bool)
    for number, row in enumerate(rows):
        if remaining[row] > 0:
            remaining[row] -= 1
            is_kept[number] = False
    return is_kept
