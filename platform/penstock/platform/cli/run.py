"""`penstock run`: a pipeline over records that are there already."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import StepPrinter, format_examples, print_json, print_table
from penstock.platform.cli.stream_arguments import stream_argument

if TYPE_CHECKING:
    from penstock.platform.services.bounded_runs import BoundedRunResult

EXAMPLES = format_examples(
    "penstock run sensor_minute",
    "penstock run sensor_minute --from delta:raw/sensors --name audit",
    "penstock run sensor_minute --day 2026-01-31",
    "penstock run sensor_minute --from json:/data/readings --records-per-batch 5000000",
    "penstock run word_count --from text:/data/books",
)


@click.command(name="run", epilog=EXAMPLES)
@stream_argument
@click.option(
    "--from",
    "origin",
    metavar="FORMAT:PATH",
    help="Files to read, as json, csv, parquet, delta or text; a relative path is one of the warehouse. Without it "
    "the records are those that the pipeline itself names: its topic, as far as it goes now, or its files.",
)
@click.option(
    "--day",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Read what the archive took of the topic on that day, in UTC; the run is named after it.",
)
@click.option("--name", help="The run's name; a run that was cut off goes on under its name.")
@click.option(
    "--records-per-batch", type=click.IntRange(min=1), help="Cut the input into batches of about so many."
)
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(
    stream: str,
    origin: str | None,
    day: datetime | None,
    name: str | None,
    records_per_batch: int | None,
    as_json: bool,
) -> None:
    """Run a pipeline over stored records, to their end: for a backfill, an audit, a test.

    Its values are those of the last panes that a live stream shows of the same records, except for records that
    came too late there. They go to tables of the run's own, in the warehouse's folder runs/STREAM/NAME.
    """
    from penstock.platform.services.bounded_runs import run_over_stored_records

    if origin and day:
        raise click.UsageError("Say --from or --day: a day is one of the archive's.")
    settings, archive_day = current_settings(), day.date() if day else None
    with StepPrinter().step(f"{stream} over stored records") as report_progress:
        run_result = run_over_stored_records(
            settings, stream, origin, name, records_per_batch, report_progress, archive_day
        )
    if as_json:
        print_json(run_result.as_json())
    else:
        _print_result(run_result)


def _print_result(run_result: "BoundedRunResult") -> None:
    accounts = run_result.accounts
    print_table(list(accounts), [list(accounts.values())])
    click.echo(f"{run_result.tables}:")
    print_table(["table", "rows"], [[str(Path(name)), rows] for name, rows in run_result.rows.items()])
