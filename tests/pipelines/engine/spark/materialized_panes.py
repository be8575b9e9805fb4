"""What panes leave where each brings a value, takes one back, or stands in another's place."""

from typing import Any

import pyarrow as pa

from penstock.engine.plan import Stage

BOUNDS = ("window_start", "window_end")
Left = dict[tuple[Any, ...], tuple[Any, ...]]


def left(stage: Stage, panes: pa.Table) -> Left:
    """The value of each key and window that stands, after every change in its order.

    A pane may take back only what stands. Where panes take back, one that comes without must bring what is new, or
    say again what stands, as a pane on time does that changes nothing.
    """
    standing: Left = {}
    for row in sorted(panes.to_pylist(), key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        (place, value), kind = named(stage, row), row["kind"]
        if kind == "insert":
            assert stage.accumulation != "retracting" or standing.get(place, value) == value, row
            standing[place] = value
        else:
            assert kind != "retract" or standing[place] == value, row
            del standing[place]
    return standing


def named(stage: Stage, row: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The key and window of a row, and its values."""
    place = tuple(row[name] for name in (*stage.key, *BOUNDS))
    return place, tuple(repr(row[output.name]) for output in stage.aggregates)


def rows(stage: Stage, table: pa.Table) -> Left:
    """The same of a table that has one row for each."""
    found = [named(stage, row) for row in table.to_pylist()]
    assert len(dict(found)) == len(found)
    return dict(found)
