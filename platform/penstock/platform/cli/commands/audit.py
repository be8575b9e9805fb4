"""`penstock audit`: verify a stream from its producers to its tables."""

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option, stream_argument
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from penstock.quality.audit.verdict import AuditReport

SECTION: Section = "Results and quality"

EXAMPLES = format_examples(
    "penstock audit sensor_minute",
    "penstock audit sensor_minute --keys 0.05",
    "penstock audit sensor_minute --since 2026-01-31T12:00:00 --until 2026-01-31T18:00:00",
)
_time_type = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"])


@click.command(name="audit", short_help="Verify a stream's records and results end to end", epilog=EXAMPLES)
@stream_argument
@click.option(
    "--keys", default=1.0, show_default=True, help="Share of the keys whose results are recomputed."
)
@click.option(
    "--since", type=_time_type, help="Recompute only windows that start at this time (UTC) or later."
)
@click.option("--until", type=_time_type, help="Recompute only windows that end by this time (UTC).")
@json_option
def command(stream: str, keys: float, since: datetime | None, until: datetime | None, as_json: bool) -> int:
    """Verify that a stream accounts for every record and that its tables hold the correct results.

    The audit compares each link of the chain: acknowledged records with the topic, the topic with its archive,
    the archive with each batch, the batch ledger with the control store and the journal, and the results with a
    recomputation. A check that cannot run reports why.

    The stream may keep running: the audit covers it up to its last batch. The exit code is 1 if anything
    differs, and the output names the first difference.
    """
    from penstock.platform.services.audit import audit_stream, parse_sample

    sample = parse_sample(keys, since, until)
    with StepPrinter().step(f"audit {stream}") as report_progress:
        report = audit_stream(current_settings(), stream, sample, report_progress)
    if as_json:
        print_json(report.as_json())
    else:
        print_report(report)
    return 0 if report.passed else 1


def print_report(report: "AuditReport") -> None:
    """Print the verdict of each check, the number of verdicts by state, and the first difference."""
    print_table(
        ("check", "", "up to batch " + str(report.upto)),
        [(verdict.check, verdict.state, verdict.summary) for verdict in report.verdicts],
    )
    from penstock.quality.audit.verdict import VerdictState

    counts = Counter(verdict.state for verdict in report.verdicts)
    counts_text = ", ".join(f"{counts[state]} {state}" for state in VerdictState if counts[state])
    click.echo(f"{len(report.verdicts)} checks: {counts_text}")
    if report.first_difference is not None:
        click.secho(f"first difference: {report.first_difference}", fg="red")
