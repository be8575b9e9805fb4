"""Rows of a table of the warehouse as lines of text."""

import json
from base64 import b64encode
from datetime import datetime
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.text_table import TableColumn, list_shown_columns, render_table, shorten

if TYPE_CHECKING:
    from penstock.platform.services.table_rows import RowQuery, TableRows

MAX_CELL_WIDTH = 40
"""How wide a cell may be in a terminal; records and messages are longer."""
FIRST_TO_GO = ("window_end", "final")
"""Columns that are left out before others where there is no room: a reader can do without them."""


def render_rows(table_rows: "TableRows", query: "RowQuery", width: int | None) -> list[str]:
    """Return the rows as a table that fits into a width, and what is left out of it.

    Columns that the query asks for are all there, however wide the table becomes.
    """
    if not table_rows.rows:
        return ["no row of the table meets the condition" if query.where else "the table has no rows yet"]
    columns = [
        TableColumn(name, _is_number(table_rows, index), _rank(name, index))
        for index, name in enumerate(table_rows.columns)
    ]
    cell_width = None if width is None else MAX_CELL_WIDTH
    cells = [[shorten(format_cell(value), cell_width) for value in row] for row in table_rows.rows]
    if query.columns or query.all_columns:
        return render_table(columns, cells)
    notes = []
    shown = list_shown_columns(columns, cells, width)
    if no_room := [name for name in table_rows.columns if name not in shown]:
        notes.append(
            f"No room for {', '.join(no_room)}: name columns with --columns, or enlarge the terminal."
        )
    if width is not None and table_rows.left_out:
        notes.append(f"Left out: {', '.join(table_rows.left_out)} (--all-columns).")
    return [
        *render_table(columns, cells, width),
        *(click.style(shorten(note, width), dim=True) for note in notes),
    ]


def format_cell(value: object) -> str:
    """Format a value: floats with three decimals, times in seconds, bytes as text or Base64, parts as JSON."""
    match value:
        case None:
            return ""
        case float():
            return f"{value:.3f}"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case bytes():
            return _format_bytes(value)
        case dict() | list():
            return json.dumps(value, default=str, ensure_ascii=False)
        case _:
            return str(value)


def _format_bytes(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text else b64encode(value).decode()


def _is_number(table_rows: "TableRows", index: int) -> bool:
    values = [row[index] for row in table_rows.rows if row[index] is not None]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _rank(name: str, index: int) -> int:
    """Return when a column is left out: the first one never, later ones before earlier ones."""
    if name in FIRST_TO_GO:
        return 1_000 + len(FIRST_TO_GO) - FIRST_TO_GO.index(name)
    return index
