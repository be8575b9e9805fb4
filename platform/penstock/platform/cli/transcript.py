"""`penstock transcript`: recorded cases, run through an engine."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json_line

if TYPE_CHECKING:
    from penstock.conformance import CaseVerdict, ConformanceEngine, LocatedCase


@click.group(name="transcript")
def command() -> None:
    """Cases that say which panes and late records some input must bring about."""


EXAMPLES = format_examples(
    "penstock transcript run cases.json",
    "penstock transcript run cases.json --engine reference --id one --json",
)


@command.command(epilog=EXAMPLES)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--engine",
    type=click.Choice(["spark", "reference"]),
    default="spark",
    show_default=True,
    help="The engine of live streams, or the contract in plain Python.",
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this case; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line, also on a terminal.")
def run(files: tuple[Path, ...], engine: str, ids: tuple[str, ...], as_json: bool) -> int:
    """Run cases and say of each whether it went as expected; ends with 1 when any did not.

    A file or a case that is not of the schema is named with what is wrong in it, after all other cases have run;
    then it ends with 2.

    With Spark, each case is a stream: its records go through Spark, its batches are folded into a state, and its
    panes are read back from Delta tables.
    """
    from penstock.conformance import find_cases, report_verdicts, run_cases

    located_cases = find_cases(files, ids)
    print_verdict = _print_verdict_json if as_json or not sys.stdout.isatty() else _print_verdict
    malformed: list[str] = []
    with (
        _show_progress(len(located_cases)) as report_progress,
        _open_engine(engine, report_progress) as selected_engine,
    ):
        verdicts = run_cases([case.node for case in located_cases], selected_engine)
        all_passed = report_verdicts(
            _report_count(
                _collect_malformed(verdicts, located_cases, malformed), report_progress, len(located_cases)
            ),
            print_verdict,
        )
    for message in malformed:
        click.secho(f"penstock: {message}", fg="red", err=True)
    return 2 if malformed else 0 if all_passed else 1


@contextmanager
def _open_engine(name: str, report_progress: Callable[[str], None]) -> "Iterator[ConformanceEngine]":
    from penstock.conformance import ReferenceEngine

    if name == "reference":
        yield ReferenceEngine()
        return
    from penstock.conformance.on_spark import SparkEngine
    from penstock.platform.services.command_spark import open_command_spark

    with open_command_spark(current_settings(), "transcripts", report_progress) as session:
        yield SparkEngine(session)


def _collect_malformed(
    verdicts: "Iterator[CaseVerdict]", located_cases: "Sequence[LocatedCase]", malformed: list[str]
) -> "Iterator[CaseVerdict]":
    """Note of each case that is not of the schema where it stands, and what is wrong."""
    for case, verdict in zip(located_cases, verdicts, strict=True):
        if verdict.malformed:
            malformed.append(f"{case.location}: {verdict.malformed}")
        yield verdict


def _report_count(
    verdicts: "Iterator[CaseVerdict]", report_progress: Callable[[str], None], case_count: int
) -> "Iterator[CaseVerdict]":
    for number, verdict in enumerate(verdicts, 1):
        report_progress(f"{number} of {case_count}")
        yield verdict


@contextmanager
def _show_progress(case_count: int) -> Iterator[Callable[[str], None]]:
    """Show how far the run is, on a terminal that the lines themselves do not fill."""
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
