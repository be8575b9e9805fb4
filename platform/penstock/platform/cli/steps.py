"""The steps of a command that takes long, and what each is doing.

A terminal gets a spinner with the time since the start of the step. Any other output gets a line every ten seconds,
so that a log shows which part takes long.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from penstock.core.periodic import run_periodically
from penstock.core.progress import ProgressReporter

LINE_INTERVAL_S = 10.0


class StepPrinter:
    """Prints one step after another, with the duration of each."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    @contextmanager
    def step(
        self, description: str, is_done: Callable[[], bool] = lambda: True
    ) -> Iterator[ProgressReporter]:
        """Show a step while its block runs; yield the function that reports its progress.

        Unless `is_done` after the block, the step gets no check mark.
        """
        started_s = self._clock()
        if sys.stderr.isatty():
            with _show_spinner(description) as report_progress:
                yield report_progress
        else:
            lines = ProgressLines(description, self._clock)
            with run_periodically(LINE_INTERVAL_S, lines.print_line, "progress"):
                yield lines.report
        if is_done():
            self.print_done(description, self._clock() - started_s)
        else:
            self.report_skipped(description)

    def print_done(self, description: str, seconds: float = 0.0) -> None:
        """Print that a step is done."""
        duration_text = f"  ({seconds:.1f} s)" if seconds >= 0.1 else ""
        click.echo(f"{click.style('✓', fg='green')} {description}{duration_text}", err=True)

    def report_skipped(self, description: str) -> None:
        """Print that a step is skipped."""
        click.echo(f"{click.style('!', fg='yellow')} {description}", err=True)


class ProgressLines:
    """The progress of a step, for an output that is no terminal."""

    def __init__(self, description: str, clock: Callable[[], float]) -> None:
        self._description = description
        self._clock = clock
        self._started_s = clock()
        self._text = ""

    def report(self, text: str) -> None:
        """Take note of what the step does now; nothing is printed yet."""
        self._text = text

    def print_line(self) -> None:
        """Print what the step does now, and how long it has taken."""
        elapsed = f"{self._clock() - self._started_s:.0f} s"
        doing = f": {self._text}" if self._text else ""
        click.echo(f"… {self._description}{doing} ({elapsed})", err=True)


@contextmanager
def _show_spinner(description: str) -> Iterator[ProgressReporter]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}  [dim]{task.fields[doing]}[/dim]"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=None, doing="")
        yield lambda text: progress.update(task, doing=text)
