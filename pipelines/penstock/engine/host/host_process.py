"""A stream host as a process: Spark started, signals heeded, the loop run."""

import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from penstock.engine.archive.archive_names import find_archived_topic, is_compacted
from penstock.engine.archive.archive_stream import ArchiveConfig, ArchiveStream
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.placement import DRIVER_BUDGET_BYTES
from penstock.engine.batch.poison_isolation import ResentFinder, find_no_resent
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control import HostControl
from penstock.engine.host.leases import Clock
from penstock.engine.host.restart_policy import MAX_START_ATTEMPTS
from penstock.engine.host.stream_folders import refuse_unfinished_switch, resolve_stream_folder
from penstock.engine.host.stream_handle import StreamHandle
from penstock.engine.host.stream_host import StreamHost
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.live_stream import LiveStream, StreamConfig
from penstock.engine.spark.parse.avro import SchemaLookup, refuse_without_registry
from penstock.engine.spark.session import SparkSessionConfig, is_session_alive, open_spark_session
from penstock.engine.storage import StoragePath


@dataclass(frozen=True)
class HostConfig:
    """What a host needs to know. Each stream keeps its files in a folder of its own below `streams`."""

    spark: SparkSessionConfig
    bootstrap_servers: str
    streams: Path
    warehouse: StoragePath
    spark_kafka_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What a secured broker wants of Spark's source; not shown, for a password is among it."""
    client_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What it wants of clients of librdkafka."""
    schema_lookup: SchemaLookup = field(default=refuse_without_registry, repr=False)
    """Where the schemas of records in Avro are found."""
    min_batch_interval_ms: int = 0
    """Least time from one batch's begin to the next, for every stream."""
    driver_budget_bytes: int = DRIVER_BUDGET_BYTES
    lease_ttl_ms: int = 15_000
    poison_limit: int = 0
    """How many records of a stream may be set aside lately because they break its own code."""
    find_resent: ResentFinder = field(default=find_no_resent, repr=False)
    """Which records were sent again under other addresses."""
    max_attempts: int = MAX_START_ATTEMPTS
    """How often in a row a stream is tried before it is parked."""
    address: str = ""
    """Where it shows its health and metrics."""
    name: str = ""
    """Who holds the leases; made of the machine's name and chance where it is not given."""


def run_host_process(
    config: HostConfig,
    control: HostControl,
    load_plan: Callable[[str], Plan],
    clock: Clock,
    on_ready: Callable[[], None] = lambda: None,
    read_definition_version: Callable[[str], str] = lambda _: "",
) -> None:
    """Run until SIGTERM or SIGINT, then drain every stream. Raises HostError when Spark ends by itself.

    `ready` is called when Spark is there, before the first stream is begun. `written` says what a stream is written
    in, so that one that was parked is taken up again when that changes.
    """
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    session = open_spark_session(config.spark)
    signal.signal(signal.SIGINT, lambda *_: stop.set())  # Spark puts its own in place of the first

    def create_stream(
        name: str, fence: WriteFence, report_outcome: Callable[[BatchOutcome], None]
    ) -> StreamHandle:
        topic = find_archived_topic(name)
        if topic is not None:
            archive_config = ArchiveConfig(
                config.bootstrap_servers,
                config.streams / name,
                config.warehouse,
                client_options=config.client_options,
                compacted=is_compacted(topic),
            )
            return ArchiveStream(topic, archive_config, fence, report_outcome, clock)
        refuse_unfinished_switch(config.streams, name)
        stream_config = StreamConfig(
            config.bootstrap_servers,
            resolve_stream_folder(config.streams, name),
            config.warehouse,
            schema_lookup=config.schema_lookup,
            min_batch_interval_ms=config.min_batch_interval_ms,
            driver_budget_bytes=config.driver_budget_bytes,
            poison_limit=config.poison_limit,
            find_resent=config.find_resent,
            spark_kafka_options=config.spark_kafka_options,
            client_options=config.client_options,
        )
        return LiveStream(load_plan(name), session, stream_config, fence, report_outcome, clock)

    host = StreamHost(
        config.name or f"{socket.gethostname()}-{uuid4().hex[:8]}",
        control,
        create_stream,
        clock,
        is_spark_alive=lambda: is_session_alive(session),
        lease_ttl_ms=config.lease_ttl_ms,
        max_attempts=config.max_attempts,
        address=config.address,
        read_definition_version=read_definition_version,
    )
    on_ready()
    host.run(stop)
    session.stop()
