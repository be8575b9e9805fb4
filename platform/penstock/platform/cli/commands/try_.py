"""`penstock try`: run a pipeline over a few records in this process."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option, stream_argument
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from penstock.platform.services.pipeline_trial import TrialResult

SECTION: Section = "Pipelines"
MAX_PRINTED_ROWS = 20

EXAMPLES = format_examples(
    "penstock try sensor_minute",
    "penstock try sensor_minute --from readings.jsonl --limit 100",
    "penstock try click_through --from impressions=shown.jsonl --from ad-clicks=clicks.csv",
)


@click.command(name="try", short_help="Run a pipeline over a few records, here", epilog=EXAMPLES)
@stream_argument
@click.option(
    "--from",
    "origins",
    metavar="[TOPIC=]FILE",
    multiple=True,
    help="A file of records: JSON lines, CSV or Parquet, by its suffix. Repeat it for each topic. "
    "Default: sample records of the topic's generator.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Records to read of each topic.",
)
@click.option("--panes", "show_panes", is_flag=True, help="Show every pane, not only the newest values.")
@json_option
def command(stream: str, origins: tuple[str, ...], limit: int, show_panes: bool, as_json: bool) -> int:
    """Run a pipeline over a few records in this process, without Kafka, and print its results.

    Nothing is stored, and a breakpoint in your functions works. The input is one batch, and all windows close at
    its end. SQL and DataFrame steps start Spark, which takes some seconds.

    The exit code is 1 if records are invalid.
    """
    from penstock.platform.services.pipeline_trial import try_pipeline

    files = dict(_parse_origin(origin) for origin in origins)
    with StepPrinter().step(f"try {stream}") as report_progress:
        result = try_pipeline(current_settings(), stream, files, limit, report_progress)
    if as_json:
        print_json(result.as_json())
    else:
        _print_result(result, show_panes=show_panes)
    return 1 if result.quarantined else 0


def _parse_origin(text: str) -> tuple[str | None, Path]:
    topic, separator, path = text.partition("=")
    if Path(text).exists() or not separator:
        topic, path = "", text
    if not Path(path).exists():
        raise click.UsageError(f"--from: {path} does not exist. Name a file, as in --from readings.jsonl")
    return topic or None, Path(path)


def _print_result(result: "TrialResult", *, show_panes: bool) -> None:
    counts = (
        f"{result.records} records ({result.input}), {len(result.late)} late, "
        f"{len(result.quarantined)} quarantined"
    )
    click.echo(counts)
    click.echo()
    _print_rows(result.panes if show_panes else result.latest)
    for title, rows in (("late", result.late), ("quarantined", result.quarantined)):
        if rows:
            click.echo(f"\n{title}:")
            _print_rows(rows)


def _print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(rows[0]) if rows else []
    shown = rows[:MAX_PRINTED_ROWS]
    print_table(columns, [[row.get(name) for name in columns] for row in shown], "no rows")
    if len(rows) > len(shown):
        click.echo(f"… and {len(rows) - len(shown)} more; --json prints all")
