"""`penstock table`: which tables there are, and their newest rows."""

from datetime import datetime

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json, print_table
from penstock.platform.tables import KINDS, find_table, newest_rows, tables


@click.group(name="table")
def command() -> None:
    """Look at the results."""


_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")


def _complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    found = {table.name for table in tables(current_settings().tables)}
    return sorted(name for name in found if name.startswith(typed))


@command.command(name="list", epilog=example("penstock table list"))
@_json
def list_tables(as_json: bool) -> None:
    """List the tables of the warehouse."""
    found = list(tables(current_settings().tables))
    if as_json:
        print_json([{"kind": t.kind, "name": t.name, "address": t.address} for t in found])
    else:
        print_table(
            ("kind", "table", "where"),
            [(table.kind, table.name, table.address) for table in found],
            empty="no tables yet: `penstock up` starts the first stream",
        )


@command.command(
    epilog=example("penstock table show sensor_minute", "penstock table show sensor_minute --kind panes")
)
@click.argument("name", shell_complete=_complete)
@click.option(
    "--kind", type=click.Choice(KINDS), help="Which folder of the warehouse; the first that has the name."
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many rows.")
@_json
def show(name: str, kind: str | None, limit: int, as_json: bool) -> None:
    """Show a table's newest rows."""
    columns, rows = newest_rows(find_table(current_settings().tables, name, kind), limit)
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(
            columns, [[_cell(value) for value in row] for row in rows], empty="the table has no rows yet"
        )


def _cell(value: object) -> object:
    match value:
        case float():
            return f"{value:.3f}"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return value
