"""Builds the rows of a join from panes that contain the elements of both inputs."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.conformance.reference.output_rows import Pane, ReplacedWindow
from penstock.engine.plan.joins import Join
from penstock.engine.plan.stages import Stage
from penstock.engine.windows.join_window import JoinWindow

JoinInputRow = Mapping[str, Any]
JoinedColumns = tuple[tuple[str, Any], ...]


def expand_join_rows(stage: Stage, panes: Iterable[Pane | ReplacedWindow]) -> Iterator[Pane | ReplacedWindow]:
    """Yield the rows of panes; a join pane has any number of rows.

    A pane that updates an earlier one, and is not the last, retracts and inserts only the rows that differ.
    """
    if stage.join is None or isinstance(stage.window, JoinWindow):
        yield from panes
        return
    remaining = deque(panes)
    while remaining:
        pane = remaining.popleft()
        next_pane = remaining[0] if remaining else None
        if isinstance(pane, ReplacedWindow):
            yield pane
        elif isinstance(next_pane, Pane) and is_update_of(next_pane, pane):
            yield from diff_join_rows(stage.join, pane, next_pane)
            remaining.popleft()
        else:
            yield from (
                replace(pane, values=values) for values in join_pane(stage.join, pane.key, pane.values)
            )


def is_update_of(inserted: Pane, retracted: Pane) -> bool:
    """Tell whether a pane replaces the retraction just before it, with more panes to follow."""
    is_same_window = (inserted.key, inserted.start, inserted.end) == (
        retracted.key,
        retracted.start,
        retracted.end,
    )
    is_update = (retracted.kind, inserted.kind) == ("retract", "insert")
    return is_same_window and is_update and inserted.timing != "on_time" and not inserted.final


def diff_join_rows(join: Join, retracted: Pane, inserted: Pane) -> Iterator[Pane]:
    """Yield the removed rows and the added rows."""
    old, new = (Counter(join_pane(join, pane.key, pane.values)) for pane in (retracted, inserted))
    for pane, changed_rows in ((retracted, old - new), (inserted, new - old)):
        yield from (replace(pane, values=row_values) for row_values in changed_rows.elements())


def pane_content(stage: Stage, key: Sequence[Any], values: JoinedColumns) -> Any:
    """Return the content of a pane: its values, or for a join its rows in any order."""
    return values if stage.join is None else sorted(join_pane(stage.join, key, values), key=repr)


def join_pane(join: Join, key: Sequence[Any], values: JoinedColumns) -> Iterator[JoinedColumns]:
    """Yield the values of each joined row. As in SQL, a key with a null matches nothing."""
    rows_by_side = dict(values)
    left = [dict(zip(join.fields_from(join.left), row, strict=True)) for row in rows_by_side["left"]]
    right = [dict(zip(join.fields_from(join.right), row, strict=True)) for row in rows_by_side["right"]]
    sides = [(left, []), ([], right)] if None in key else [(left, right)]
    for left_row, right_row in (pair for side_pair in sides for pair in pair_rows(join, *side_pair)):
        row_by_input = {join.left: left_row, join.right: right_row}
        yield tuple((column.name, row_by_input[column.input].get(column.field)) for column in join.columns)


def pair_rows(
    join: Join, left: Sequence[JoinInputRow], right: Sequence[JoinInputRow]
) -> Iterator[tuple[JoinInputRow, JoinInputRow]]:
    """Yield the pairs of elements that match; an empty row stands for a missing side."""
    match join.kind:
        case "semi":
            yield from ((row, {}) for row in left if right)
            return
        case "anti":
            yield from ((row, {}) for row in left if not right)
            return
    yield from ((left_row, right_row) for left_row in left for right_row in right)
    if join.kind in ("left", "full") and not right:
        yield from ((row, {}) for row in left)
    if join.kind in ("right", "full") and not left:
        yield from (({}, row) for row in right)
