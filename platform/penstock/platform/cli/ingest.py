"""`penstock ingest`: records into a topic, each accounted for in a ledger."""

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from penstock.infra.readiness import tell_ready
from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, example

if TYPE_CHECKING:
    from penstock.ingestion.feed import Feed, Progress, Summary

TOLD_EVERY_MS = 60_000
"""How often a feed without a terminal says how far it is."""


def _known(_context: click.Context, _parameter: click.Parameter, source: str) -> str:
    """Refuse a source that there is not, with those that there are."""
    from penstock.ingestion.sources.opening import source_kinds

    if source not in source_kinds():
        raise click.BadParameter(f"{source!r} is no source; there are {', '.join(source_kinds())}")
    return source


def _complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from penstock.ingestion.sources.opening import source_kinds

    return [kind for kind in source_kinds() if kind.startswith(typed)]


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line."""

    source: str
    topic: str
    place: str
    rate: float | None
    speed: float | None
    count: int | None
    seed: int
    follow: bool
    producer: str


EXAMPLE = example(
    "penstock ingest sensors --rate 50",
    "penstock ingest clicks --count 1000 --seed 7",
    "penstock ingest csv --place readings.csv --topic sensors",
    "penstock ingest socket --place 127.0.0.1:9999 --topic lines",
)


@click.command(name="ingest", epilog=EXAMPLE)
@click.argument("source", callback=_known, shell_complete=_complete)
@click.option("--topic", help="Where to; a source of the same name as a topic needs none.")
@click.option("--place", default="", help="A file, a folder, a URL, or host:port.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Records a second; else at once.")
@click.option("--speed", type=click.FloatRange(min=0, min_open=True), help="Times the records' own pace.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many; else with the source.")
@click.option("--seed", default=1, show_default=True, help="Where random numbers begin.")
@click.option("--follow", is_flag=True, help="Keep looking for new files in the folder.")
@click.option("--producer", help="The ledger's name; a second run of a name goes on where the first ended.")
def command(
    source: str,
    topic: str | None,
    place: str,
    rate: float | None,
    speed: float | None,
    count: int | None,
    seed: int,
    follow: bool,
    producer: str | None,
) -> int:
    """Write a source's records into a topic. What the broker acknowledged is in the producer's ledger.

    Ctrl-C finishes what is in flight; the next run goes on from there.
    """
    named = producer or f"{topic or source}-{seed}"
    wanted = Wanted(source, topic or source, place, rate, speed, count, seed, follow, named)
    feed = _feed(wanted)
    from penstock.ingestion.feed import Limits

    with Steps().step(f"{named} wrote to {feed.contract.topic} at {feed.bootstrap}") as tell:
        summary = feed.run(_stopped_by_signal(), _teller(tell), Limits(count=count))
    return _end(summary)


def _feed(wanted: Wanted) -> "Feed":
    from penstock.ingestion.contracts import load_contract
    from penstock.ingestion.feed import Feed
    from penstock.ingestion.producer.formats import format_of
    from penstock.ingestion.registry import open_registry
    from penstock.ingestion.sources.opening import SourceOptions, open_source
    from penstock.ingestion.sources.replay import Pace
    from penstock.platform.clock import now_ms

    settings, contract = current_settings(), load_contract(wanted.topic)
    registry = open_registry(settings.registry) if contract.encoding == "avro" else None
    folder = settings.home / "producers" / wanted.producer
    options = SourceOptions(
        place=wanted.place,
        seed=wanted.seed,
        rate=wanted.rate,
        follow=wanted.follow,
        index=folder.with_suffix(".files") if wanted.follow else None,
        pace=Pace(speed=wanted.speed, rate=wanted.rate),
    )
    source = open_source(wanted.source, contract, format_of(contract, registry), now_ms, options)
    client = settings.kafka.client("ingestion")
    return Feed(source, contract, settings.kafka.servers, folder, now_ms, registry, client=client)


def _stopped_by_signal() -> threading.Event:
    """Set when the process is asked to end, so that what is in flight is finished."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop


def _teller(tell: Callable[[str], None]) -> "Callable[[Progress], None]":
    told = 0
    ready = False

    def progress(now: "Progress") -> None:
        nonlocal told, ready
        if now.acknowledged and not ready:
            ready = True
            tell_ready()
        rate = now.acknowledged * 1000 / now.milliseconds if now.milliseconds else 0.0
        heard = f"; {now.heard}" if now.heard else ""
        text = f"{now.sent} sent, {now.acknowledged} acknowledged, {rate:.0f}/s{heard}"
        tell(text)
        if now.milliseconds - told >= TOLD_EVERY_MS:
            told = now.milliseconds
            click.echo(text, err=True)

    return progress


def _end(summary: "Summary") -> int:
    text = f"{summary.acknowledged} records acknowledged, {summary.dead_letters} broken ones to dead letters"
    click.echo(text if summary.complete else f"{text}; others were in flight: the next run settles them")
    return 0 if summary.complete else 1
