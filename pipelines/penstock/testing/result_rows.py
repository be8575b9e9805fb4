"""Rows of results as tests compare them: dicts with the names of the columns of the tables."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from penstock.conformance.reference import LateRow, Pane, QuarantinedRow, ReplacedWindow
from penstock.engine.plan.stages import Stage
from penstock.testing.times import format_time

ResultRow: TypeAlias = dict[str, Any]
"""A row. Times of windows are ISO 8601 in UTC, or None where a window has no bound."""

WINDOW_COLUMNS = ("window_start", "window_end")
PANE_COLUMNS = ("window_number", "pane", "timing", "on_time_index", "final", "kind", "records")
LATE_COLUMNS = ("topic", "partition", "offset", "event_time", *WINDOW_COLUMNS, "missed_by_ms", "reason")
QUARANTINE_COLUMNS = ("topic", "partition", "offset", "reason")


def pane_row(stage: Stage, pane: Pane) -> ResultRow:
    """Return a row of the log of panes."""
    numbered = {} if pane.window_number is None else {"window_number": pane.window_number}
    return {
        **value_row(stage, pane),
        **numbered,
        "pane": pane.pane_index,
        "timing": pane.timing,
        "on_time_index": pane.on_time_index,
        "final": pane.final,
        "kind": pane.kind,
        "records": pane.records,
    }


def value_row(stage: Stage, pane: Pane) -> ResultRow:
    """Return the key, the window and the values of a pane."""
    return {
        **dict(zip(stage.key, pane.key, strict=True)),
        "window_start": format_time(pane.start),
        "window_end": format_time(pane.end),
        **{name: list(value) if isinstance(value, tuple) else value for name, value in pane.values},
    }


def late_row(stage: Stage, row: LateRow) -> ResultRow:
    """Return a row of the table of late records."""
    source, partition, offset = row.address
    return {
        "topic": source,
        "partition": partition,
        "offset": offset,
        **dict(zip(stage.key, row.key, strict=True)),
        "event_time": format_time(row.time),
        "window_start": format_time(row.start),
        "window_end": format_time(row.end),
        "missed_by_ms": row.missed_by,
        "reason": row.reason,
    }


def quarantined_row(row: QuarantinedRow) -> ResultRow:
    """Return a row of the quarantine."""
    source, partition, offset = row.address
    return {"topic": source, "partition": partition, "offset": offset, "reason": row.reason}


def latest_rows(stage: Stage, panes: Iterable[Pane], replaced: Iterable[ReplacedWindow]) -> list[ResultRow]:
    """Return the newest values of each key and window, by window and key.

    A retracted window has none, unless it was inserted again; a replaced window has none.
    """
    newest: dict[tuple[Any, ...], Pane] = {}
    rows: list[Pane | ReplacedWindow] = [*panes, *replaced]
    for row in sorted(rows, key=lambda each: each.batch):
        identity = (row.key, row.start, row.end, getattr(row, "window_number", None))
        if isinstance(row, Pane) and row.kind == "insert":
            newest[identity] = row
        else:
            newest.pop(identity, None)
    ordered = sorted(newest.values(), key=lambda pane: (pane.start, pane.end, repr(pane.key)))
    return [value_row(stage, pane) for pane in ordered]


def select_columns(rows: Sequence[ResultRow], columns: Sequence[str]) -> list[ResultRow]:
    """Return rows with only these columns; all if none are named."""
    return [{name: row[name] for name in columns} for row in rows] if columns else list(rows)
