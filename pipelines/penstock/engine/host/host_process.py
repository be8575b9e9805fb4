"""The stream host as a process: starts Spark, handles signals, and runs the host's loop."""

import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from penstock.core.clock import Clock
from penstock.engine.archive.archive_names import find_archived_topic, is_compacted
from penstock.engine.archive.archive_stream import ArchiveConfig, ArchiveStream
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.placement import DRIVER_BUDGET_BYTES
from penstock.engine.batch.poison_isolation import ResentFinder, find_no_resent
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control import HostControl
from penstock.engine.host.restart_policy import MAX_RETRIES
from penstock.engine.host.stream_handle import StreamHandle
from penstock.engine.host.stream_host import StreamHost
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.live_stream import LiveStream, StreamConfig
from penstock.engine.spark.parse.avro import SchemaLookup, refuse_without_registry
from penstock.engine.spark.session import SparkSessionConfig, is_session_alive, open_spark_session
from penstock.engine.storage import StoragePath
from penstock.engine.stream_folders import refuse_unfinished_switch, resolve_stream_folder


@dataclass(frozen=True)
class HostConfig:
    """The configuration of a host. Each stream keeps its files in its own folder below `streams`."""

    spark: SparkSessionConfig
    bootstrap_servers: str
    streams: Path
    warehouse: StoragePath
    spark_kafka_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of Spark's Kafka source for a secured broker; not shown, because they hold a password."""
    client_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of librdkafka clients for the same broker."""
    schema_lookup: SchemaLookup = field(default=refuse_without_registry, repr=False)
    """Finds the schemas of Avro records."""
    min_batch_interval_ms: int = 0
    """The least time from the start of one batch to the next, for every stream."""
    driver_budget_bytes: int = DRIVER_BUDGET_BYTES
    lease_ttl_ms: int = 15_000
    poison_limit: int = 0
    """How many records of a stream may be quarantined because they break user code, within the retained journal."""
    find_resent: ResentFinder = field(default=find_no_resent, repr=False)
    """Finds records that were replayed to other offsets."""
    max_retries: int = MAX_RETRIES
    """How often in a row a stream may fail before it fails for good."""
    address: str = ""
    """The address of its health page and metrics."""
    name: str = ""
    """The holder of the leases; by default the machine's name with a random suffix."""


def run_host_process(
    config: HostConfig,
    control: HostControl,
    load_plan: Callable[[str], Plan],
    clock: Clock,
    on_ready: Callable[[], None] = lambda: None,
    read_definition_version: Callable[[str], str] = lambda _: "",
) -> None:
    """Run until SIGTERM or SIGINT, then drain every stream. Raises HostError when Spark ends by itself.

    `on_ready` is called when Spark runs, before the first stream starts. `read_definition_version` returns the
    version of a stream's definition: a failed stream is started again when it changes.
    """
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    session = open_spark_session(config.spark)
    signal.signal(signal.SIGINT, lambda *_: stop.set())  # Spark replaces the first handler

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
        max_retries=config.max_retries,
        address=config.address,
        read_definition_version=read_definition_version,
    )
    on_ready()
    host.run(stop)
    session.stop()
