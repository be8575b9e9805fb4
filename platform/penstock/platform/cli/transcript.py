"""`penstock transcript`: recorded cases, run through an engine."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.output import example

if TYPE_CHECKING:
    from penstock.pipelines.transcripts import Verdict


@click.group(name="transcript")
def command() -> None:
    """Cases that say which panes and late records some input must bring about."""


EXAMPLE = example("penstock transcript run cases.json", "penstock transcript run cases.json --id one --json")


@command.command(epilog=EXAMPLE)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this case; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line, also on a terminal.")
def run(files: tuple[Path, ...], ids: tuple[str, ...], as_json: bool) -> int:
    """Run cases and say of each whether it went as expected; ends with 1 when any did not."""
    from penstock.pipelines.transcripts import ReferenceEngine, passed, run_files

    say = _say_json if as_json or not sys.stdout.isatty() else _say
    return 0 if passed(run_files(files, ReferenceEngine(), ids), say) else 1


def _say_json(verdict: "Verdict") -> None:
    click.echo(json.dumps(verdict.as_json(), default=str))


def _say(verdict: "Verdict") -> None:
    colour = "green" if verdict.ok else "yellow" if verdict.engine_specific else "red"
    click.echo(f"{click.style('ok     ' if verdict.ok else 'differs', fg=colour)} {verdict.id}")
    if not verdict.ok:
        click.echo(f"  expected {json.dumps(verdict.expected, default=str)}")
        click.echo(f"  got      {json.dumps(verdict.got, default=str)}")
