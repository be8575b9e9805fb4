"""Progress of a feed: a bar on a terminal, otherwise one line a minute."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from penstock.infra.readiness import report_ready

if TYPE_CHECKING:
    from penstock.ingestion.feed import FeedProgress

PROGRESS_INTERVAL_MS = 60_000


@contextmanager
def show_progress(description: str, count: int | None) -> "Iterator[Callable[[FeedProgress], None]]":
    """Yield the function that shows progress. At the first acknowledgement it reports the feed as ready."""
    with _show_bar(description, count) if sys.stderr.isatty() else _show_lines(description) as show_counts:
        is_ready = False

        def on_progress(progress: "FeedProgress") -> None:
            nonlocal is_ready
            if progress.acknowledged_records and not is_ready:
                is_ready = True
                report_ready()
            show_counts(progress)

        yield on_progress


@contextmanager
def _show_bar(description: str, count: int | None) -> "Iterator[Callable[[FeedProgress], None]]":
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=count)
        yield lambda progress: bar.update(
            task,
            completed=progress.acknowledged_records,
            description=f"{description}: {describe_progress(progress, count)}",
        )


@contextmanager
def _show_lines(description: str) -> "Iterator[Callable[[FeedProgress], None]]":
    click.echo(description, err=True)
    last_shown_ms = 0

    def show_counts(progress: "FeedProgress") -> None:
        nonlocal last_shown_ms
        if progress.elapsed_ms - last_shown_ms >= PROGRESS_INTERVAL_MS:
            last_shown_ms = progress.elapsed_ms
            click.echo(describe_progress(progress, None), err=True)

    yield show_counts


def describe_progress(progress: "FeedProgress", count: int | None) -> str:
    """Format the number of acknowledged and in-flight records, the rate, and a broker error if there is one."""
    rate = progress.acknowledged_records * 1_000 / progress.elapsed_ms if progress.elapsed_ms else 0.0
    target = f" of {count:,}" if count else ""
    parts = [
        f"{progress.acknowledged_records:,}{target} acknowledged",
        f"{progress.sent_records - progress.acknowledged_records:,} in flight",
    ]
    parts += [f"{progress.dead_letters:,} dead letters"] if progress.dead_letters else []
    parts.append(f"{rate:,.0f}/s")
    return ", ".join(parts) + (f"; waiting: {progress.broker_error}" if progress.broker_error else "")
