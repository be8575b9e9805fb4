"""Tables as lines of text that fit into a width, such as `docker ps` prints.

A table that is too wide loses its least important columns first. So each row stays on one line, and a person can
read a column from top to bottom.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

import click

from penstock.platform.cli.output import STATE_COLORS

GAP = "  "
ELLIPSIS = "…"


@dataclass(frozen=True)
class TableColumn:
    """The heading of a column, how it is aligned, and when it is left out.

    Where there is no room, columns of a higher `rank` are left out before those of a lower one. Rank 0 stays.
    """

    name: str
    is_number: bool = False
    rank: int = 0


def render_table(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int | None = None
) -> list[str]:
    """Return the lines of a table that fits into a width; with all columns and whole cells if there is none."""
    cell_widths = _measure_cells(columns, rows)
    shown = _select_columns(columns, cell_widths, width)
    header = GAP.join(
        _align(columns[index].name, columns[index], cell_widths[index]) for index in shown
    ).rstrip()
    lines = [click.style(shorten(header, width), bold=True)]
    for row in rows:
        cells = [_align(row[index], columns[index], cell_widths[index]) for index in shown]
        lines.append(_color_states(shorten(GAP.join(cells).rstrip(), width), row, shown))
    return lines


def list_shown_columns(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int | None
) -> list[str]:
    """Return the names of the columns that `render_table` shows."""
    return [columns[index].name for index in _select_columns(columns, _measure_cells(columns, rows), width)]


def _measure_cells(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(len(column.name), *(len(row[index]) for row in rows)) if rows else len(column.name)
        for index, column in enumerate(columns)
    ]


def shorten(text: str, width: int | None) -> str:
    """Return the first line of a text, cut off with an ellipsis where it does not fit."""
    line = text.partition("\n")[0]
    return line if width is None or len(line) <= width else line[: max(width - 1, 0)].rstrip() + ELLIPSIS


def wrap_text(text: str, width: int | None) -> list[str]:
    """Return the lines of a text that fit into a width; one line if there is none."""
    return [text] if width is None else wrap(text, width)


def _select_columns(
    columns: Sequence[TableColumn], cell_widths: Sequence[int], width: int | None
) -> list[int]:
    """Return the positions of the columns that fit, or of those of rank 0."""
    shown = list(range(len(columns)))
    while width is not None and _total_width(shown, cell_widths) > width:
        optional = [index for index in shown if columns[index].rank]
        if not optional:
            break
        shown.remove(max(optional, key=lambda index: columns[index].rank))
    return shown


def _total_width(shown: Sequence[int], cell_widths: Sequence[int]) -> int:
    return sum(cell_widths[index] for index in shown) + len(GAP) * (len(shown) - 1)


def _align(text: str, column: TableColumn, width: int) -> str:
    return text.rjust(width) if column.is_number else text.ljust(width)


def _color_states(line: str, row: Sequence[str], shown: Sequence[int]) -> str:
    """Color the states of a row, such as green for running; only whole words count."""
    for cell in (row[index] for index in shown):
        color = STATE_COLORS.get(cell)
        if color is not None:
            before, word, after = line.partition(f" {cell}")
            line = f"{before} {click.style(cell, fg=color)}{after}" if word else line
    return line
