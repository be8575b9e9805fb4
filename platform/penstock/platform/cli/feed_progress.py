"""How far a feed is: a bar where there is a terminal, a line now and then where there is none."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from penstock.infra.readiness import tell_ready

if TYPE_CHECKING:
    from penstock.ingestion.feed import Progress

TOLD_EVERY_MS = 60_000


@contextmanager
def showing(doing: str, count: int | None) -> "Iterator[Callable[[Progress], None]]":
    """Yield what is told of progress. With the first acknowledgement the feed is ready: who keeps it is told."""
    with _bar(doing, count) if sys.stderr.isatty() else _lines(doing) as show:
        ready = False

        def told(now: "Progress") -> None:
            nonlocal ready
            if now.acknowledged and not ready:
                ready = True
                tell_ready()
            show(now)

        yield told


@contextmanager
def _bar(doing: str, count: int | None) -> "Iterator[Callable[[Progress], None]]":
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(doing, total=count)
        yield lambda now: bar.update(
            task, completed=now.acknowledged, description=f"{doing}: {in_words(now, count)}"
        )


@contextmanager
def _lines(doing: str) -> "Iterator[Callable[[Progress], None]]":
    click.echo(doing, err=True)
    last = 0

    def show(now: "Progress") -> None:
        nonlocal last
        if now.milliseconds - last >= TOLD_EVERY_MS:
            last = now.milliseconds
            click.echo(in_words(now, None), err=True)

    yield show


def in_words(now: "Progress", count: int | None) -> str:
    """Say how many records are where, how quickly, and what the broker does if it does not keep up."""
    rate = now.acknowledged * 1_000 / now.milliseconds if now.milliseconds else 0.0
    aim = f" of {count:,}" if count else ""
    words = [f"{now.acknowledged:,}{aim} acknowledged", f"{now.sent - now.acknowledged:,} in flight"]
    words += [f"{now.dead_letters:,} dead letters"] if now.dead_letters else []
    words.append(f"{rate:,.0f}/s")
    return ", ".join(words) + (f"; waiting: {now.heard}" if now.heard else "")
