"""A stream host as a process: Spark started, signals heeded, the loop run."""

import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from penstock.pipelines.archive.names import archived_topic, is_compacted
from penstock.pipelines.archive.stream import ArchiveConfig, ArchiveStream
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.placement import BUDGET_BYTES
from penstock.pipelines.batch.poison import SentAgain, nothing_sent_again
from penstock.pipelines.batch.right import Right
from penstock.pipelines.host.control import Control
from penstock.pipelines.host.folders import check_whole, folder_of_stream
from penstock.pipelines.host.host import Host
from penstock.pipelines.host.leases import Clock
from penstock.pipelines.host.retry import PARK_AFTER
from penstock.pipelines.host.running import Running
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.spark.avro import Schemas, no_registry
from penstock.pipelines.spark.session import SparkConfig, is_alive, open_session
from penstock.pipelines.spark.stream import Stream, StreamConfig
from penstock.pipelines.store import Place


@dataclass(frozen=True)
class HostConfig:
    """What a host needs to know. Each stream keeps its files in a folder of its own below `streams`."""

    spark: SparkConfig
    bootstrap: str
    streams: Path
    warehouse: Place
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What a secured broker wants of Spark's source; not shown, for a password is among it."""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What it wants of clients of librdkafka."""
    schemas: Schemas = field(default=no_registry, repr=False)
    """Where the schemas of records in Avro are found."""
    interval_ms: int = 0
    """Least time from one batch's begin to the next, for every stream."""
    driver_budget: int = BUDGET_BYTES
    lease_ms: int = 15_000
    poison_limit: int = 0
    """How many records of a stream may be set aside lately because they break its own code."""
    sent_again: SentAgain = field(default=nothing_sent_again, repr=False)
    """Which records were sent again under other addresses."""
    park_after: int = PARK_AFTER
    """How often in a row a stream is tried before it is parked."""
    address: str = ""
    """Where it shows its health and metrics."""
    name: str = ""
    """Who holds the leases; made of the machine's name and chance where it is not given."""


def run(
    config: HostConfig,
    control: Control,
    load: Callable[[str], Plan],
    clock: Clock,
    ready: Callable[[], None] = lambda: None,
    written: Callable[[str], str] = lambda _: "",
) -> None:
    """Run until SIGTERM or SIGINT, then drain every stream. Raises HostError when Spark ends by itself.

    `ready` is called when Spark is there, before the first stream is begun. `written` says what a stream is written
    in, so that one that was parked is taken up again when that changes.
    """
    stop = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    session = open_session(config.spark)
    signal.signal(signal.SIGINT, lambda *_: stop.set())  # Spark puts its own in place of the first

    def make(name: str, right: Right, told: Callable[[Outcome], None]) -> Running:
        topic = archived_topic(name)
        if topic is not None:
            kept = ArchiveConfig(
                config.bootstrap,
                config.streams / name,
                config.warehouse,
                client=config.client,
                compacted=is_compacted(topic),
            )
            return ArchiveStream(topic, kept, right, told, clock)
        check_whole(config.streams, name)
        place = StreamConfig(
            config.bootstrap,
            folder_of_stream(config.streams, name),
            config.warehouse,
            schemas=config.schemas,
            interval_ms=config.interval_ms,
            driver_budget=config.driver_budget,
            poison_limit=config.poison_limit,
            sent_again=config.sent_again,
            kafka=config.kafka,
            client=config.client,
        )
        return Stream(load(name), session, place, right, told, clock)

    host = Host(
        config.name or f"{socket.gethostname()}-{uuid4().hex[:8]}",
        control,
        make,
        clock,
        alive=lambda: is_alive(session),
        lease_ms=config.lease_ms,
        park_after=config.park_after,
        address=config.address,
        written=written,
    )
    ready()
    host.run(stop)
    session.stop()
