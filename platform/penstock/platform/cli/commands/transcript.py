"""`penstock transcript`: run conformance cases."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.core.progress import ProgressReporter
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples, print_json_line

if TYPE_CHECKING:
    from penstock.conformance import CaseVerdict, LocatedCase
    from penstock.testing import BackendName

SECTION: Section = "Pipelines"


@click.group(
    name="transcript",
    short_help="Run conformance cases",
    epilog=format_examples("penstock transcript run cases.json"),
)
def command() -> None:
    """Run cases: input records, and the panes and late records that are expected.

    A case defines its own window and triggers, or names one of your pipelines.
    """


EXAMPLES = format_examples(
    "penstock transcript run cases.json",
    "penstock transcript run my_pipeline_cases.yaml --engine reference",
    "penstock transcript run cases.json --engine reference --id one --json",
)


@command.command(short_help="Run cases and compare the results", epilog=EXAMPLES)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--engine",
    type=click.Choice(["spark", "reference"]),
    default="spark",
    show_default=True,
    help="spark: the engine of live streams. reference: the evaluator in plain Python.",
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this case; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, on a terminal too.")
def run(files: tuple[Path, ...], engine: "BackendName", ids: tuple[str, ...], as_json: bool) -> int:
    """Run cases and report for each whether the result is as expected. The exit code is 1 if a case differs.

    A malformed file or case is reported after all other cases have run; then the exit code is 2.

    With Spark, each case runs as a stream: Spark reads the records, the batches update the state, and the panes
    are read back from Delta tables.
    """
    from penstock.conformance import find_cases, report_verdicts
    from penstock.platform.services.case_runs import run_located_cases

    located_cases = find_cases(files, ids)
    print_verdict = _print_verdict_json if as_json or not sys.stdout.isatty() else _print_verdict
    malformed: list[str] = []
    with _show_progress(len(located_cases)) as report_progress:
        verdicts = run_located_cases(current_settings(), located_cases, engine, report_progress)
        all_passed = report_verdicts(
            _report_count(
                _collect_malformed(verdicts, located_cases, malformed), report_progress, len(located_cases)
            ),
            print_verdict,
        )
    for message in malformed:
        click.secho(f"penstock: {message}", fg="red", err=True)
    return 2 if malformed else 0 if all_passed else 1


def _collect_malformed(
    verdicts: "Iterator[CaseVerdict]", located_cases: "Sequence[LocatedCase]", malformed: list[str]
) -> "Iterator[CaseVerdict]":
    """Yield the verdicts, and collect the location and error of each malformed case."""
    for case, verdict in zip(located_cases, verdicts, strict=True):
        if verdict.malformed:
            malformed.append(f"{case.location}: {verdict.malformed}")
        yield verdict


def _report_count(
    verdicts: "Iterator[CaseVerdict]", report_progress: ProgressReporter, case_count: int
) -> "Iterator[CaseVerdict]":
    for number, verdict in enumerate(verdicts, 1):
        report_progress(f"{number} of {case_count}")
        yield verdict


@contextmanager
def _show_progress(case_count: int) -> Iterator[ProgressReporter]:
    """Show the progress if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{case_count} cases") as status:
        yield lambda text: status.update(f"cases  [dim]{text}[/dim]")


def _print_verdict_json(verdict: "CaseVerdict") -> None:
    print_json_line(verdict.as_json())


def _print_verdict(verdict: "CaseVerdict") -> None:
    color = "green" if verdict.is_ok else "yellow" if verdict.engine_specific else "red"
    click.echo(f"{click.style('ok     ' if verdict.is_ok else 'differs', fg=color)} {verdict.id}")
    if not verdict.is_ok:
        click.echo(f"  expected {json.dumps(verdict.expected, default=str)}")
        click.echo(f"  got      {json.dumps(verdict.actual, default=str)}")
