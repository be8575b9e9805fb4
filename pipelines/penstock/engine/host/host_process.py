"""The stream host as a process: starts Spark, handles signals, and runs the host's loop."""

import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from penstock.core.clock import Clock
from penstock.core.signal_events import set_on_signal
from penstock.engine.archive.archive_names import find_archived_topic, is_compacted
from penstock.engine.archive.archive_stream import ArchiveConfig, ArchiveStream
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control import HostControl
from penstock.engine.host.stream_handle import StreamHandle
from penstock.engine.host.stream_host import StreamHost
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.session import SparkSessionConfig, is_session_alive, open_spark_session
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.stream_folders import refuse_unfinished_switch, resolve_stream_folder
from penstock.engine.upgrade.kept_future_skew import keep_stored_skew


@dataclass(frozen=True)
class HostConfig:
    """The configuration of a host. Each stream keeps its files in its own folder below `streams`."""

    spark: SparkSessionConfig
    streams: Path
    stream_config: StreamConfig
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
        set_on_signal(stop, signal_number)
    session = open_spark_session(config.spark)
    set_on_signal(stop, signal.SIGINT)  # Spark replaces the first handler
    stream_config = config.stream_config

    def create_stream(
        name: str, fence: WriteFence, report_outcome: Callable[[BatchOutcome], None]
    ) -> StreamHandle:
        topic = find_archived_topic(name)
        if topic is not None:
            archive_config = ArchiveConfig(
                stream_config.broker,
                config.streams / name,
                stream_config.warehouse,
                compacted=is_compacted(topic),
                claim=make_stream_claim(config.streams, name),
            )
            return ArchiveStream(topic, archive_config, fence, report_outcome, clock)
        refuse_unfinished_switch(config.streams, name)
        directory = resolve_stream_folder(config.streams, name)
        plan, claim = keep_stored_skew(directory, load_plan(name)), make_stream_claim(config.streams, name)
        return LiveStream(plan, session, directory, stream_config, fence, report_outcome, clock, claim)

    host = StreamHost(
        config.name or f"{socket.gethostname()}-{uuid4().hex[:8]}",
        control,
        create_stream,
        clock,
        is_spark_alive=lambda: is_session_alive(session),
        settings=stream_config.settings,
        address=config.address,
        read_definition_version=read_definition_version,
    )
    on_ready()
    host.run(stop)
    session.stop()
