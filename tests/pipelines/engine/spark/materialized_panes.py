"""Applies a log of panes: inserts set the value of a key and window, retractions remove it."""

from typing import Any

import pyarrow as pa

from penstock.engine.plan.stages import Stage

BOUND_COLUMNS = ("window_start", "window_end")
ValuesByWindow = dict[tuple[Any, ...], tuple[Any, ...]]


def materialize_panes(stage: Stage, panes: pa.Table) -> ValuesByWindow:
    """Return the last value of each key and window, after every change in order.

    A pane may retract only the current value. In retracting mode, an insert without a retraction must be new or
    repeat the current value, as an on-time pane without a change does.
    """
    values: ValuesByWindow = {}
    for row in sorted(panes.to_pylist(), key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        (window, value), kind = split_row(stage, row), row["kind"]
        if kind == "insert":
            assert stage.accumulation != "retracting" or values.get(window, value) == value, row
            values[window] = value
        else:
            assert kind != "retract" or values[window] == value, row
            del values[window]
    return values


def split_row(stage: Stage, row: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split a row into its key and window, and its values."""
    window = tuple(row[name] for name in (*stage.key, *BOUND_COLUMNS))
    return window, tuple(repr(row[output.name]) for output in stage.aggregates)


def index_rows(stage: Stage, table: pa.Table) -> ValuesByWindow:
    """Return the same for a table with one row per key and window."""
    found = [split_row(stage, row) for row in table.to_pylist()]
    assert len(dict(found)) == len(found)
    return dict(found)
