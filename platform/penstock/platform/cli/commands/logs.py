"""`penstock logs`: show the logs of the stack's programs."""

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from penstock.core.duration import is_duration, parse_duration_ms
from penstock.core.names import explain_unknown_name
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names
from penstock.platform.cli.output import format_examples
from penstock.platform.log_reading.log_entry import LOG_LEVELS, LogEntry, LogFilter, LogLevel

if TYPE_CHECKING:
    from penstock.platform.log_reading.log_parser import LogParser

SECTION: Section = "Local stack"

POLL_INTERVAL_S = 0.3
LEVEL_COLORS = {"warning": "yellow", "error": "red", "critical": "red"}


def _list_programs() -> list[str]:
    return sorted(path.stem for path in (current_settings().home / "logs").glob("*.log"))


@click.command(
    name="logs",
    short_help="Show the logs of the stack's programs",
    epilog=format_examples(
        "penstock logs",
        "penstock logs --stream sensor_minute --level warning --since 10m",
        "penstock logs host --follow",
    ),
)
@click.argument("programs", nargs=-1, shell_complete=complete_names(_list_programs))
@click.option("--stream", metavar="NAME", help="Only entries of this stream.")
@click.option("--level", type=click.Choice(LOG_LEVELS), help="Only entries of this level and above.")
@click.option(
    "--since", metavar="DURATION|TIME", help="Only entries from then on: 10m, or 2026-01-31T12:00 (UTC)."
)
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(min=0),
    help="Number of entries of each log; 20 by default, all with --since. Use 0 with --follow for new ones only.",
)
@click.option("--follow", "-f", is_flag=True, help="Print new entries until Ctrl-C.")
@click.option("--full", is_flag=True, help="Print whole stack traces, which are folded otherwise.")
def command(
    programs: tuple[str, ...],
    stream: str | None,
    level: str | None,
    since: str | None,
    lines: int | None,
    follow: bool,
    full: bool,
) -> None:
    """Show the last entries of each program's log, or of the named programs only.

    A stack trace of Java or Scala is folded to one line, which names the line of your code if it takes part.
    """
    folder = current_settings().home / "logs"
    known_programs = _list_programs()
    for name in programs:
        if name not in known_programs:
            raise click.UsageError(explain_unknown_name("log", name, known_programs))
    log_filter = LogFilter(
        cast("LogLevel", level or "debug"), stream, None if since is None else _parse_since(since)
    )
    entry_limit = (None if since else 20) if lines is None else lines
    log_files = [folder / f"{name}.log" for name in programs or known_programs]
    for path in log_files:
        for entry in deque(_read_entries(path, log_filter), entry_limit):
            _print_entry(path, entry, full)
    if follow:
        _follow_logs(log_files, log_filter, full)


def _parse_since(text: str) -> int:
    """Return the time of `10m`, or of an ISO 8601 time, in milliseconds."""
    from penstock.core.clock import now_ms
    from penstock.platform.log_reading.log_parser import to_milliseconds

    if is_duration(text):
        return now_ms() - parse_duration_ms(text)
    at_ms = to_milliseconds(text)
    if at_ms is None:
        raise click.UsageError(
            f"--since {text!r}: write a duration such as 10m, or a time such as 2026-01-31T12:00"
        )
    return at_ms


def _read_entries(path: Path, log_filter: LogFilter) -> Iterator[LogEntry]:
    from penstock.platform.log_reading.log_files import read_log_lines
    from penstock.platform.log_reading.log_parser import parse_lines

    previous_at_ms: int | None = None
    for entry in parse_lines(read_log_lines(path)):
        if log_filter.accepts(entry, previous_at_ms):
            yield entry
        previous_at_ms = previous_at_ms if entry.at_ms is None else entry.at_ms


def _follow_logs(log_files: list[Path], log_filter: LogFilter, full: bool) -> None:
    from penstock.core.clock import now_ms
    from penstock.platform.log_reading.log_files import tail_log
    from penstock.platform.log_reading.log_parser import LogParser

    tails = {path: (tail_log(path), LogParser()) for path in log_files}
    while True:
        has_output = False
        for path, (tail, parser) in tails.items():
            for entry in _take_new_entries(tail, parser):
                has_output = True
                if log_filter.accepts(entry, now_ms()):
                    _print_entry(path, entry, full)
        if not has_output:
            time.sleep(POLL_INTERVAL_S)


def _take_new_entries(tail: Iterator[str | None], parser: "LogParser") -> Iterator[LogEntry]:
    """Yield the entries that were written since the last call. The program may still be writing the last one."""
    while (line := next(tail)) is not None:
        yield from parser.add_line(line)
    yield from parser.flush()


def _print_entry(path: Path, entry: LogEntry, full: bool) -> None:
    """Print an entry. On a terminal, the level has a color; elsewhere, there are no colors at all."""
    from penstock.platform.log_reading.folding import render_entry

    color = LEVEL_COLORS.get(entry.level or "")
    program = click.style(f"{path.stem:10}", fg="cyan")
    for line in render_entry(entry, full=full):
        click.echo(f"{program} {click.style(line, fg=color) if color else line}")
