"""`penstock table`: list the warehouse's tables and show their newest rows."""

from collections.abc import Iterable

import click

from penstock.engine.tables.table_comments import TABLE_DESCRIPTIONS
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.live_view import print_view, watch_documents, watch_option, watch_view
from penstock.platform.cli.options import complete_names, json_option
from penstock.platform.cli.output import format_examples, print_json, print_json_line, print_table
from penstock.platform.cli.row_table import render_rows
from penstock.platform.cli.table_removal import claim, drop
from penstock.platform.services.warehouse_tables import TABLE_KINDS, find_table, iter_tables

SECTION: Section = "Results and quality"


@click.group(
    name="table",
    short_help="List, show, drop and hand over tables",
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


KINDS_HELP = "\n".join(
    [
        "Which rows count (pipelines/docs/which_rows_count.md):",
        "",
        "\b",
        *(f"{kind:<11} {text.partition('. ')[0].rstrip('.')}." for kind, text in TABLE_DESCRIPTIONS.items()),
    ]
)
"""The first sentence about each kind of table."""


@command.command(
    short_help="Show the newest rows of a table",
    epilog=format_examples(
        "penstock table show sensor_minute",
        "penstock table show sensor_minute --kind panes --all-columns",
        'penstock table show sensor_minute --where "temperature > 20"',
        "penstock table show sensor_minute --watch",
    )
    + f"\n\n{KINDS_HELP}",
)
@click.argument("name", shell_complete=complete_names(_list_tables))
@click.option(
    "--kind",
    type=click.Choice(TABLE_KINDS),
    help="Folder of the warehouse. Default: the first one that has a table of that name.",
)
@click.option("--columns", metavar="NAME,…", default="", help="The columns to show, in this order.")
@click.option("--all-columns", is_flag=True, help="Show internal columns too, such as the batch of a row.")
@click.option("--where", metavar="CONDITION", default="", help="Show only rows that meet a condition in SQL.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Number of rows.")
@click.option("--future-first", is_flag=True, help="Put windows that start in the future first, not last.")
@watch_option
@json_option
def show(
    name: str,
    kind: str | None,
    columns: str,
    all_columns: bool,
    where: str,
    limit: int,
    future_first: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Show the newest rows of a table.

    Columns that say how a row came about are left out of the table, but not of --json. In a terminal, what does not
    fit is cut off, and columns at the end are left out.
    """
    from penstock.core.clock import now_ms
    from penstock.platform.services.table_rows import RowQuery, read_rows

    column_names = tuple(filter(None, (column.strip() for column in columns.split(","))))
    query = RowQuery(limit, column_names, all_columns or as_json, where, future_first)
    table = find_table(current_settings().warehouse_path, name, kind)

    def print_document() -> None:
        table_rows = read_rows(table, query, now_ms())
        documents = [dict(zip(table_rows.columns, row, strict=True)) for row in table_rows.rows]
        (print_json_line if watch else print_json)(documents)

    def render(width: int | None) -> list[str]:
        return render_rows(read_rows(table, query, now_ms()), query, width)

    if as_json and watch:
        watch_documents(print_document)
    elif as_json:
        print_document()
    elif watch:
        watch_view(render)
    else:
        print_view(render)


command.add_command(drop)
command.add_command(claim)
