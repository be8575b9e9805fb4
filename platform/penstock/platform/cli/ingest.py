"""`penstock ingest`: records into a topic, each accounted for in a ledger."""

import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, example

if TYPE_CHECKING:
    from penstock.ingestion.feed import Progress, Summary
    from penstock.ingestion.generators import Generator

TOLD_EVERY_MS = 60_000
"""How often a feed without a terminal says how far it is."""


@click.group(name="ingest")
def command() -> None:
    """Write records into topics. What the broker acknowledged is in the producer's ledger."""


@command.command(
    epilog=example("penstock ingest sensors --rate 50", "penstock ingest sensors --count 1000 --seed 7")
)
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="Records a second; as fast as can be without."
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many; goes on until stopped without.")
@click.option("--seed", default=1, show_default=True, help="Where the random numbers begin.")
@click.option("--producer", help="The ledger's name; a second run of a name goes on where the first ended.")
def sensors(rate: float | None, count: int | None, seed: int, producer: str | None) -> int:
    """Readings of sensors, some of them late."""
    from penstock.ingestion.generators import Sensors

    return _feed(Sensors(seed), rate, count, producer or f"sensors-{seed}")


def _feed(generator: "Generator", rate: float | None, count: int | None, producer: str) -> int:
    from penstock.ingestion.contracts import load_contract
    from penstock.ingestion.feed import Feed, Limits
    from penstock.ingestion.sources import Generated
    from penstock.platform.clock import now_ms

    settings, contract = current_settings(), load_contract(generator.topic)
    source = Generated(generator, contract, now_ms, rate=rate)
    ledger = settings.home / "producers" / producer
    feed = Feed(source, contract, settings.kafka.servers, ledger, now_ms)
    with Steps().step(f"{producer} writes to {contract.topic} at {settings.kafka.servers}") as tell:
        summary = feed.run(_stopped_by_signal(), _teller(tell), Limits(count=count))
    return _end(summary)


def _stopped_by_signal() -> threading.Event:
    """Set when the process is asked to end, so that what is in flight is finished."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop


def _teller(tell: Callable[[str], None]) -> "Callable[[Progress], None]":
    told = 0

    def progress(now: "Progress") -> None:
        nonlocal told
        text = f"{now.sent} sent, {now.acknowledged} acknowledged{f'; {now.heard}' if now.heard else ''}"
        tell(text)
        if now.milliseconds - told >= TOLD_EVERY_MS:
            told = now.milliseconds
            click.echo(text, err=True)

    return progress


def _end(summary: "Summary") -> int:
    text = f"{summary.acknowledged} records acknowledged, {summary.dead_letters} of them to dead letters"
    click.echo(text if summary.complete else f"{text}; others were in flight: the next run settles them")
    return 0 if summary.complete else 1
