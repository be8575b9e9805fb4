"""`penstock transcript`: recorded cases, run through an engine."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json_line

if TYPE_CHECKING:
    from penstock.pipelines.transcripts import Engine, Found, Verdict


@click.group(name="transcript")
def command() -> None:
    """Cases that say which panes and late records some input must bring about."""


EXAMPLE = example(
    "penstock transcript run cases.json",
    "penstock transcript run cases.json --engine reference --id one --json",
)


@command.command(epilog=EXAMPLE)
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
    from penstock.pipelines.transcripts import found_in, passed, run_nodes

    found = found_in(files, ids)
    say = _say_json if as_json or not sys.stdout.isatty() else _say
    malformed: list[str] = []
    with _progress(len(found)) as tell, _engine(engine, tell) as chosen:
        verdicts = run_nodes([case.node for case in found], chosen)
        good = passed(_counted(_noted(verdicts, found, malformed), tell, len(found)), say)
    for sentence in malformed:
        click.secho(f"penstock: {sentence}", fg="red", err=True)
    return 2 if malformed else 0 if good else 1


@contextmanager
def _engine(name: str, tell: Callable[[str], None]) -> "Iterator[Engine]":
    from penstock.pipelines.transcripts import ReferenceEngine

    if name == "reference":
        yield ReferenceEngine()
        return
    from penstock.pipelines.transcripts.on_spark import SparkEngine
    from penstock.platform.local_spark import spark_session

    with spark_session(current_settings(), "transcripts", tell) as session:
        yield SparkEngine(session)


def _noted(
    verdicts: "Iterator[Verdict]", found: "Sequence[Found]", malformed: list[str]
) -> "Iterator[Verdict]":
    """Note of each case that is not of the schema where it stands, and what is wrong."""
    for case, verdict in zip(found, verdicts, strict=True):
        if verdict.malformed:
            malformed.append(f"{case.place}: {verdict.malformed}")
        yield verdict


def _counted(verdicts: "Iterator[Verdict]", tell: Callable[[str], None], cases: int) -> "Iterator[Verdict]":
    for number, verdict in enumerate(verdicts, 1):
        tell(f"{number} of {cases}")
        yield verdict


@contextmanager
def _progress(cases: int) -> Iterator[Callable[[str], None]]:
    """Show how far the run is, on a terminal that the lines themselves do not fill."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{cases} cases") as status:
        yield lambda text: status.update(f"cases  [dim]{text}[/dim]")


def _say_json(verdict: "Verdict") -> None:
    print_json_line(verdict.as_json())


def _say(verdict: "Verdict") -> None:
    colour = "green" if verdict.ok else "yellow" if verdict.engine_specific else "red"
    click.echo(f"{click.style('ok     ' if verdict.ok else 'differs', fg=colour)} {verdict.id}")
    if not verdict.ok:
        click.echo(f"  expected {json.dumps(verdict.expected, default=str)}")
        click.echo(f"  got      {json.dumps(verdict.got, default=str)}")
