"""The rows of a join: a pane says what its window holds of both inputs, and here it is put together."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.pipelines.plan.joins import Join
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.windows import PairWindow
from penstock.pipelines.reference.answers import Pane, Replaced

Row = Mapping[str, Any]
Values = tuple[tuple[str, Any], ...]


def with_rows(stage: Stage, shown: Iterable[Pane | Replaced]) -> Iterator[Pane | Replaced]:
    """Yield the rows of panes: of a join any number for each.

    One that stands for another, and that others are to follow, takes back and shows only the rows that differ.
    """
    if stage.join is None or isinstance(stage.window, PairWindow):
        yield from shown
        return
    rows = deque(shown)
    while rows:
        each = rows.popleft()
        following = rows[0] if rows else None
        if isinstance(each, Replaced):
            yield each
        elif isinstance(following, Pane) and corrects(following, each):
            yield from differing(stage.join, each, following)
            rows.popleft()
        else:
            yield from (replace(each, values=values) for values in joined(stage.join, each.key, each.values))


def corrects(pane: Pane, before: Pane) -> bool:
    """Tell whether a pane stands for what is taken back just before it, and others are to follow."""
    of_one = (pane.key, pane.start, pane.end) == (before.key, before.start, before.end)
    kinds = (before.kind, pane.kind) == ("retract", "insert")
    return of_one and kinds and pane.timing != "on_time" and not pane.final


def differing(join: Join, before: Pane, now: Pane) -> Iterator[Pane]:
    """Yield what of the rows before is gone, and what of those now is new."""
    old, new = (Counter(joined(join, pane.key, pane.values)) for pane in (before, now))
    for pane, values in ((before, old - new), (now, new - old)):
        yield from (replace(pane, values=each) for each in values.elements())


def says(stage: Stage, key: Sequence[Any], values: Values) -> Any:
    """Return what a pane says: its values, or for a join its rows, in whatever order."""
    return values if stage.join is None else sorted(joined(stage.join, key, values), key=repr)


def joined(join: Join, key: Sequence[Any], values: Values) -> Iterator[Values]:
    """Yield the values of each joined row, column by column. As in SQL, a key with a null in it meets nobody."""
    held = dict(values)
    left = [dict(zip(join.fields_of(join.left), row, strict=True)) for row in held["left"]]
    right = [dict(zip(join.fields_of(join.right), row, strict=True)) for row in held["right"]]
    sides = [(left, []), ([], right)] if None in key else [(left, right)]
    for one, other in (pair for both in sides for pair in pairs(join, *both)):
        found = {join.left: one, join.right: other}
        yield tuple((column.name, found[column.input].get(column.field)) for column in join.columns)


def pairs(join: Join, left: Sequence[Row], right: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield which elements stand together; an empty row stands for none."""
    match join.kind:
        case "semi":
            yield from ((row, {}) for row in left if right)
            return
        case "anti":
            yield from ((row, {}) for row in left if not right)
            return
    yield from ((one, other) for one in left for other in right)
    if join.kind in ("left", "full") and not right:
        yield from ((row, {}) for row in left)
    if join.kind in ("right", "full") and not left:
        yield from (({}, row) for row in right)
