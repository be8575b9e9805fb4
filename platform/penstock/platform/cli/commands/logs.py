"""`penstock logs`: show the logs of the stack's programs."""

import time
from collections.abc import Iterator
from pathlib import Path

import click

from penstock.core.names import explain_unknown_name
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names
from penstock.platform.cli.output import format_examples

SECTION: Section = "Local stack"

POLL_INTERVAL_S = 0.3


def _list_programs() -> list[str]:
    return sorted(path.stem for path in (current_settings().home / "logs").glob("*.log"))


@click.command(
    name="logs",
    short_help="Show the logs of the stack's programs",
    epilog=format_examples("penstock logs", "penstock logs host --follow"),
)
@click.argument("programs", nargs=-1, shell_complete=complete_names(_list_programs))
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Number of lines of each log. Use 0 with --follow for new lines only.",
)
@click.option("--follow", "-f", is_flag=True, help="Print new lines until Ctrl-C.")
def command(programs: tuple[str, ...], lines: int, follow: bool) -> None:
    """Show the last lines of each program's log, or of the named programs only."""
    folder = current_settings().home / "logs"
    known_programs = _list_programs()
    for name in programs:
        if name not in known_programs:
            raise click.UsageError(explain_unknown_name("log", name, known_programs))
    log_files = [folder / f"{name}.log" for name in programs or known_programs]
    for path in log_files:
        log_lines = path.read_text("utf-8", "replace").splitlines()
        for line in log_lines[max(len(log_lines) - lines, 0) :]:
            _print_line(path, line)
    if follow:
        _follow_logs(log_files)


def _follow_logs(log_files: list[Path]) -> None:
    tails = {path: _tail_file(path) for path in log_files}
    while True:
        has_output = False
        for path, tail in tails.items():
            while (line := next(tail)) is not None:
                _print_line(path, line)
                has_output = True
        if not has_output:
            time.sleep(POLL_INTERVAL_S)


def _tail_file(path: Path) -> Iterator[str | None]:
    """Yield new lines, and None while there are none. After a rotation, continue with the new file."""
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


def _print_line(path: Path, line: str) -> None:
    click.echo(f"{click.style(f'{path.stem:10}', fg='cyan')} {line}")
