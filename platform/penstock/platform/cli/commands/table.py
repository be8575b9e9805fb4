"""`penstock table`: list the warehouse's tables and show their newest rows."""

from collections.abc import Iterable
from datetime import datetime

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names, json_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.services.warehouse_tables import TABLE_KINDS, find_table, iter_tables, read_newest_rows

SECTION: Section = "Results and quality"


@click.group(
    name="table",
    short_help="List tables and show their newest rows",
    epilog=format_examples("penstock table list", "penstock table show sensor_minute"),
)
def command() -> None:
    """List the warehouse's tables and show their newest rows."""


def _list_tables() -> Iterable[str]:
    return sorted({table.name for table in iter_tables(current_settings().warehouse_path)})


@command.command(name="list", short_help="List the tables", epilog=format_examples("penstock table list"))
@json_option
def list_tables(as_json: bool) -> None:
    """List the tables of the warehouse."""
    warehouse_tables = list(iter_tables(current_settings().warehouse_path))
    if as_json:
        print_json(
            [{"kind": table.kind, "name": table.name, "address": table.address} for table in warehouse_tables]
        )
    else:
        print_table(
            ("kind", "table", "path"),
            [(table.kind, table.name, table.address) for table in warehouse_tables],
            empty="no tables yet; start the first stream with `penstock up`",
        )


@command.command(
    short_help="Show the newest rows of a table",
    epilog=format_examples(
        "penstock table show sensor_minute", "penstock table show sensor_minute --kind panes"
    ),
)
@click.argument("name", shell_complete=complete_names(_list_tables))
@click.option(
    "--kind",
    type=click.Choice(TABLE_KINDS),
    help="Folder of the warehouse. Default: the first one that has a table of that name.",
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Number of rows.")
@json_option
def show(name: str, kind: str | None, limit: int, as_json: bool) -> None:
    """Show the newest rows of a table."""
    columns, rows = read_newest_rows(find_table(current_settings().warehouse_path, name, kind), limit)
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(
            columns,
            [[_format_cell(value) for value in row] for row in rows],
            empty="the table has no rows yet",
        )


def _format_cell(value: object) -> object:
    match value:
        case float():
            return f"{value:.3f}"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return value
