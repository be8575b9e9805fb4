"""`penstock logs`: what the programs of the stack say."""

import time
from collections.abc import Iterator
from pathlib import Path

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example
from penstock.platform.errors import StackError

LOOK_AGAIN_SECONDS = 0.3


def _programs() -> list[str]:
    return sorted(path.stem for path in (current_settings().home / "logs").glob("*.log"))


def _complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    return [name for name in _programs() if name.startswith(typed)]


@click.command(name="logs", epilog=example("penstock logs", "penstock logs host --follow"))
@click.argument("programs", nargs=-1, shell_complete=_complete)
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="How many lines of each; 0 for what comes from now on, with --follow.",
)
@click.option("--follow", "-f", is_flag=True, help="Go on as they say more, until Ctrl-C.")
def command(programs: tuple[str, ...], lines: int, follow: bool) -> None:
    """Show the end of the programs' logs: all of them, or those named."""
    folder = current_settings().home / "logs"
    known = _programs()
    for name in programs:
        if name not in known:
            raise StackError(f"{name} has no log in {folder}; there are: {', '.join(known) or 'none yet'}")
    chosen = [folder / f"{name}.log" for name in programs or known]
    for path in chosen:
        said = path.read_text("utf-8", "replace").splitlines()
        for line in said[max(len(said) - lines, 0) :]:
            _print(path, line)
    if follow:
        _follow(chosen)


def _follow(paths: list[Path]) -> None:
    tails = {path: _tail(path) for path in paths}
    while True:
        said = False
        for path, tail in tails.items():
            while (line := next(tail)) is not None:
                _print(path, line)
                said = True
        if not said:
            time.sleep(LOOK_AGAIN_SECONDS)


def _tail(path: Path) -> Iterator[str | None]:
    """Lines as they are added, None while there are none; goes on in the new file after a rotation."""
    file = path.open("r", encoding="utf-8", errors="replace")
    file.seek(0, 2)
    while True:
        if line := file.readline():
            yield line.rstrip("\n")
        elif path.exists() and path.stat().st_size < file.tell():
            file.close()
            file = path.open("r", encoding="utf-8", errors="replace")
        else:
            yield None


def _print(path: Path, line: str) -> None:
    click.echo(f"{click.style(f'{path.stem:10}', fg='cyan')} {line}")
