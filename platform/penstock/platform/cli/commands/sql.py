"""`penstock sql`: query the tables of the warehouse."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.answer_formats import FORMATS, choose_format, write_answer
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples

if TYPE_CHECKING:
    from penstock.query.sql_query import QueryOptions

SECTION: Section = "Results and quality"
DEFAULT_TABLE_ROWS = 1_000
"""How many rows a table on a screen has by default; other formats have all."""


@click.command(
    name="sql",
    short_help="Query the tables with SQL",
    epilog=format_examples(
        'penstock sql "SELECT * FROM sensor_minute ORDER BY window_start DESC LIMIT 10"',
        'penstock sql "SELECT reason, count(*) FROM sensors_quarantine GROUP BY reason" --format json',
        'penstock sql "SELECT * FROM sensor_minute" --at-batch 1200 --output minute.parquet',
        "penstock sql",
    ),
)
@click.argument("statement", required=False)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="Format of the answer. Default: that of the ending of --output, or else a table.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the answer to a new file."
)
@click.option("--at-batch", type=click.IntRange(min=0), help="Read tables as they were after this batch.")
@click.option("--at-time", metavar="TIME", help="Read tables as they were at this time (ISO 8601, UTC).")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Largest number of rows. Default: {DEFAULT_TABLE_ROWS:,} in a table, and all in other formats.",
)
@click.option(
    "--timeout",
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="End the query after this time.",
)
def command(
    statement: str | None,
    format_name: str | None,
    output: Path | None,
    at_batch: int | None,
    at_time: str | None,
    limit: int | None,
    timeout: str,
) -> None:
    """Run a query over the tables of the warehouse, or start a session if there is no STATEMENT.

    `sensor_minute` has the current rows of a table, `sensor_minute_log` every pane. The suffixes `_late`, `_ledger`
    and `_quarantine` follow the name of a stream or topic; pipelines/docs/querying.md lists them all.
    `"sensor_minute@1200"` is the table after batch 1200, also beside the newest one in the same query.

    A query sees a batch in all tables of its stream, or in none. It can change nothing, and reads no other files.
    The SQL is that of Apache DataFusion. Without a terminal, the statement is read from the standard input.
    """
    from penstock.query.sql_query import run_query

    settings = current_settings()
    output_format = choose_format(format_name, output)
    is_interactive = statement is None and output is None and sys.stdin.isatty()
    max_rows = DEFAULT_TABLE_ROWS if limit is None and output_format == "table" else limit
    options = _make_options(at_batch, at_time, max_rows, timeout)
    if is_interactive:
        from penstock.platform.cli.sql_session import SqlSession

        SqlSession(settings.warehouse_path, settings.home / "sql_history", options, output_format).run()
        return
    text = sys.stdin.read() if statement is None else statement
    write_answer(run_query(settings.warehouse_path, text, options), output_format, output)


def _make_options(
    at_batch: int | None, at_time: str | None, max_rows: int | None, timeout: str
) -> "QueryOptions":
    from penstock.core.duration import parse_duration_ms
    from penstock.platform.services.committed_changes import find_committed_changes
    from penstock.query.sql_query import QueryOptions
    from penstock.query.table_versions import AtBatch, parse_version_selector

    if at_batch is not None and at_time is not None:
        raise click.UsageError("--at-batch and --at-time select the same thing. Give one of them")
    selector = AtBatch(at_batch) if at_batch is not None else at_time and parse_version_selector(at_time)
    return QueryOptions(
        selector or None,
        max_rows,
        parse_duration_ms(timeout) / 1000,
        find_committed_changes(current_settings()),
    )
