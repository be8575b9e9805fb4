"""`penstock run`: run a pipeline over stored records."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option, records_per_batch_option, stream_argument
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.refused_view import allow_invalid_option, print_refused
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from penstock.platform.services.bounded_runs import BoundedRunResult

SECTION: Section = "Pipelines"

EXAMPLES = format_examples(
    "penstock run sensor_minute",
    "penstock run sensor_minute --from delta:raw/sensors --name audit",
    "penstock run sensor_minute --day 2026-01-31",
    "penstock run sensor_minute --from json:/data/readings --records-per-batch 5000000",
    "penstock run word_count --from text:/data/books",
)


@click.command(name="run", short_help="Run a pipeline over stored records", epilog=EXAMPLES)
@stream_argument
@click.option(
    "--from",
    "origin",
    metavar="FORMAT:PATH",
    help="Files to read: json, csv, parquet, delta or text. A relative path is relative to the warehouse. "
    "Default: the pipeline's own sources, a topic up to its current end.",
)
@click.option(
    "--day",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Read the records that the archive stored on this day (UTC). The day becomes the run's name.",
)
@click.option("--name", help="Name of the run. Reuse the name to resume an interrupted run.")
@records_per_batch_option
@allow_invalid_option
@json_option
def command(
    stream: str,
    origin: str | None,
    day: datetime | None,
    name: str | None,
    records_per_batch: int | None,
    allow_invalid: bool,
    as_json: bool,
) -> int:
    """Run a pipeline over stored records to their end, for a backfill, an audit or a test.

    The results equal the last panes of a live stream over the same records, except for records that were late
    there. They go to separate tables in runs/STREAM/NAME of the warehouse.

    Invalid records are quarantined there, and the command prints the reasons. The exit code is 1 if a record is
    invalid, unless you accept this with --allow-invalid.
    """
    from penstock.platform.services.bounded_runs import run_over_stored_records

    if origin and day:
        raise click.UsageError("--from and --day exclude each other: --day reads the archive")
    settings, archive_day = current_settings(), day.date() if day else None
    results: list[BoundedRunResult] = []

    def is_accepted() -> bool:
        return allow_invalid or not any(result.refused for result in results)

    with StepPrinter().step(f"run {stream} over stored records", is_accepted) as report_progress:
        run_result = run_over_stored_records(
            settings, stream, origin, name, records_per_batch, report_progress, archive_day
        )
        results.append(run_result)
    if as_json:
        print_json(run_result.as_json())
    else:
        _print_result(run_result)
    return 0 if is_accepted() else 1


def _print_result(run_result: "BoundedRunResult") -> None:
    accounts = run_result.accounts
    print_table(list(accounts), [list(accounts.values())])
    click.echo(f"{run_result.tables}:")
    print_table(["table", "rows"], [[str(Path(name)), rows] for name, rows in run_result.rows.items()])
    if run_result.refused:
        print_refused(run_result.refused, f"Refused records are in {run_result.tables}/quarantine.")
