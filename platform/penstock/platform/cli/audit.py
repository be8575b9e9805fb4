"""`penstock audit`: prove that a stream's records are all accounted for, and its results what they give."""

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import StepPrinter, format_examples, print_json, print_table
from penstock.platform.cli.stream_arguments import stream_argument

if TYPE_CHECKING:
    from penstock.quality.audit.verdict import AuditReport

EXAMPLES = format_examples(
    "penstock audit sensor_minute",
    "penstock audit sensor_minute --keys 0.05",
    "penstock audit sensor_minute --since 2026-01-31T12:00:00 --until 2026-01-31T18:00:00",
)
_time_type = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"])


@click.command(name="audit", epilog=EXAMPLES)
@stream_argument
@click.option(
    "--keys", default=1.0, show_default=True, help="Compute the results of this share of the keys again."
)
@click.option(
    "--since", type=_time_type, help="Compute again only windows that begin at this time or later, in UTC."
)
@click.option("--until", type=_time_type, help="Compute again only windows that end by this time, in UTC.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(stream: str, keys: float, since: datetime | None, until: datetime | None, as_json: bool) -> int:
    """Prove that every record of a stream is accounted for, and that its tables hold what the records give.

    The chain is followed from end to end: what producers had acknowledged is in the topic, the topic is its
    archive, each batch read what the archive holds, its ledger adds up and agrees with control store and
    journal, and the results are those of a recomputation. Ends with 1, and the first place, where anything
    differs. A check that cannot be made says why. The stream may run on: it is audited up to its last batch.
    """
    from penstock.platform.services.audit import audit_stream, parse_sample

    sample = parse_sample(keys, since, until)
    with StepPrinter().step(f"{stream} is audited") as report_progress:
        report = audit_stream(current_settings(), stream, sample, report_progress)
    if as_json:
        print_json(report.as_json())
    else:
        print_report(report)
    return 0 if report.is_correct else 1


def print_report(report: "AuditReport") -> None:
    """Print what became of each check, how many are right, and the first place that differs."""
    print_table(
        ("check", "", "up to batch " + str(report.upto)),
        [(verdict.check, verdict.state, verdict.summary) for verdict in report.verdicts],
    )
    counts = Counter(verdict.state for verdict in report.verdicts)
    counts_text = ", ".join(
        f"{counts[state]} {state}" for state in ("right", "wrong", "unproven") if counts[state]
    )
    click.echo(f"{len(report.verdicts)} checks: {counts_text}")
    if report.first_difference is not None:
        click.secho(f"the first place where anything differs is {report.first_difference}", fg="red")
