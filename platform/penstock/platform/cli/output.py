"""Output of commands: tables and JSON. A terminal gets colors; other outputs get plain text."""

import json
import shutil
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import Any

import click

Row = Sequence[object]


def format_examples(*lines: str) -> str:
    """Format the examples at the end of a help text."""
    prefixes = ("Example:  ", *("          " for _ in lines[1:]))
    return "\b\n" + "\n".join(start + line for start, line in zip(prefixes, lines, strict=True))


def cli_command() -> str:
    """Return how to call `penstock` here: by name, or by path if it is not on the PATH."""
    return "penstock" if shutil.which("penstock") else sys.argv[0]


def print_json(value: Any) -> None:
    """Print a value as JSON. NaN and infinities become strings, and bytes Base64, as in published topics."""
    click.echo(json.dumps(to_json_value(value), indent=2, default=str, allow_nan=False))


def print_json_line(value: Any) -> None:
    """Print a value as one line of JSON."""
    click.echo(json.dumps(to_json_value(value), default=str, allow_nan=False))


def to_json_value(value: Any) -> Any:
    """Return a value that JSON has: NaN and infinities as strings."""
    match value:
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case bytes():
            return b64encode(value).decode()
        case Mapping():
            return {name: to_json_value(item) for name, item in value.items()}
        case list() | tuple():
            return [to_json_value(item) for item in value]
        case _:
            return value


def print_table(columns: Sequence[str], rows: Sequence[Row], empty: str = "nothing") -> None:
    """Print rows as a table on a terminal, otherwise as aligned text."""
    if not rows:
        click.echo(empty)
        return
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, cells)
    else:
        _print_plain(columns, cells)


def _print_plain(columns: Sequence[str], cells: list[list[str]]) -> None:
    lines = [list(columns), *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def _print_rich(columns: Sequence[str], cells: list[list[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    text_width = sum(max(map(len, column)) for column in zip(columns, *cells, strict=True))
    padding = 1 if text_width + 3 * len(columns) < console.width else 0
    table = Table(*columns, box=SIMPLE_HEAD, header_style="bold", padding=(0, padding))
    for row in cells:
        table.add_row(*(Text(cell, style=STATE_COLORS.get(cell, "")) for cell in row))
    console.print(table)


STATE_COLORS = {
    "running": "green",
    "ok": "green",
    "wrong": "red",
    "retrying": "red",
    "failed": "red",
    "fenced": "red",
    "passed": "green",
    "stopped": "yellow",
    "starting": "yellow",
    "paused": "yellow",
}


def format_age(then_ms: int | None, now_ms: int) -> str:
    """Format the time since then in one readable unit; an empty string for None."""
    if then_ms is None:
        return ""
    seconds = (now_ms - then_ms) / 1000
    for unit_name, unit_seconds in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit_name}"
    return f"{seconds:.1f} s"
