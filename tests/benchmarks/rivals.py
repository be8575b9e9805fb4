"""The engine and its rival in benchmarks: hand-written Spark windows in the same session, over the same topic.

Both use the same broker, Spark session, and load process.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import AccumulationMode, Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.kafka.checkpoint_offsets import read_batch_ranges
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.order_window import OrderWindow
from penstock.engine.windows.window import Window
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, mean, repeatedly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

JAR_FOLDER = Path(__file__).resolve().parents[2] / ".penstock" / "jars"
PARTITION_COUNT = 2
KEY_COUNT = 1_000
READING_COLUMNS = (
    Column("device", "STRING", required=True),
    Column("at", "BIGINT", required=True),
    Column("temperature", "DOUBLE"),
)
READING_DDL = "device STRING, at BIGINT, temperature DOUBLE"
READ_TIMEOUT_S = 600.0


@dataclass
class BenchScene:
    """The broker, Spark session and scratch folder of a benchmark."""

    broker: LocalBroker
    session: "SparkSession"
    folder: Path
    folder_count: int = field(default=0)

    def new_folder(self, name: str) -> Path:
        """Return a new folder."""
        self.folder_count += 1
        return self.folder / f"{self.folder_count:04d}-{name}"


@contextlib.contextmanager
def open_scene() -> Iterator[BenchScene]:
    """Start a broker and a session in a scratch folder; both stop when the context ends."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        config = SparkSessionConfig(
            ensure_jars(JAR_FOLDER, ["spark"]), folder / "spark", java_home=find_java().home
        )
        with LocalBroker.in_directory(folder / "broker", ensure_jars(JAR_FOLDER, ["kafka"])) as broker:
            session = open_spark_session(config)
            session.sparkContext.setLogLevel("ERROR")
            try:
                yield BenchScene(broker, session, folder)
            finally:
                session.stop()


def start_load(
    bootstrap: str, topic: str, rate: float, records: int, keys: int = KEY_COUNT
) -> "subprocess.Popen[bytes]":
    """Start a process that writes records at this rate per second; 0 means as fast as it can."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.load",
        bootstrap,
        topic,
        str(rate),
        str(records),
        str(keys),
    ]
    return subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2])


def plan_mean_by_device(
    topic: str,
    window: Window,
    accumulation: AccumulationMode = "accumulating",
    trigger: Trigger | None = None,
    max_out_of_orderness: int = 10_000,
) -> Plan:
    """Return a plan of readings and mean temperature per device and window, with a pane in every batch."""
    when = Default() if isinstance(window, OrderWindow) else trigger or repeatedly(after_count(1))
    outputs = (AggregateOutput("readings", count()), AggregateOutput("temperature", mean("temperature")))
    stage = Stage(
        "bench", (topic,), window, outputs, (), ("device",), when, 0, accumulation, sinks=(PaneLog("bench"),)
    )
    return Plan(
        "bench",
        (
            PlanSource(
                topic,
                TopicOrigin(topic),
                READING_COLUMNS,
                "at",
                WatermarkStrategy(max_out_of_orderness=max_out_of_orderness),
            ),
        ),
        (stage,),
    )


@dataclass
class EngineRival:
    """The engine over a topic."""

    scene: BenchScene
    plan: Plan
    records_per_batch: int = 500_000
    committed: list[tuple[float, Sequence[tuple[int, int, int]]]] = field(default_factory=list)
    """The time at which each batch became visible, and its ranges of offsets by partition."""

    def start(self) -> None:
        """Start the stream."""
        folder = self.scene.new_folder("penstock")
        self.warehouse = folder / "warehouse"
        config = StreamConfig(
            BrokerAccess(self.scene.broker.bootstrap),
            self.warehouse,
            max_records_per_batch=self.records_per_batch,
        )
        fence = WriteFence(self.plan.name, 1, lambda: True)
        self.stream = LiveStream(
            self.plan, self.scene.session, folder / "stream", config, fence, self._record_batch, now_ms
        )
        self.stream.start()

    def stop(self) -> None:
        """Finish the batch in progress and stop."""
        failure = self.stream.failure()
        self.stream.drain()
        if failure is not None:
            raise failure

    def _record_batch(self, outcome: BatchOutcome) -> None:
        spans = [(account.partition, account.start, account.end) for account in outcome.accounts]
        self.committed.append((time.time(), spans))


@dataclass
class NativeRival:
    """Spark's own windows over a topic, with the updates of each batch appended to a Delta table."""

    scene: BenchScene
    topic: str
    size: str = "10 seconds"
    records_per_batch: int = 500_000
    committed: list[tuple[float, Sequence[tuple[int, int, int]]]] = field(default_factory=list)
    query: "StreamingQuery | None" = None

    def start(self) -> None:
        """Start the stream."""
        folder = self.scene.new_folder("native")
        checkpoint, table = folder / "checkpoint", str(folder / "table")

        def write(rows: "DataFrame", batch: int) -> None:
            (
                rows.write.format("delta")
                .mode("append")
                .option("txnAppId", "native")
                .option("txnVersion", batch)
                .save(table)
            )
            spans = [(span.partition, span.start, span.end) for span in read_batch_ranges(checkpoint, batch)]
            self.committed.append((time.time(), spans))

        frame = aggregate_windows(read_parsed(self.scene, self.topic, self.records_per_batch), self.size)
        writer = frame.writeStream.outputMode("update").foreachBatch(write)
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()

    def stop(self) -> None:
        """Stop the query."""
        assert self.query is not None
        problem = self.query.exception()
        self.query.stop()
        if problem is not None:
            raise problem


def read_parsed(scene: BenchScene, topic: str, records_per_batch: int) -> "DataFrame":
    """Return the parsed records of a topic."""
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": scene.broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": records_per_batch,
    }
    raw = scene.session.readStream.format("kafka").options(**options).load()
    return raw.selectExpr(f"from_json(CAST(value AS STRING), '{READING_DDL}') AS r").select("r.*")


def aggregate_windows(records: "DataFrame", size: str) -> "DataFrame":
    """Return readings and mean temperature per device and window."""
    timed = records.selectExpr("*", "timestamp_millis(at) AS time").withWatermark("time", "10 seconds")
    from pyspark.sql.functions import avg, count, window

    grouped = timed.groupBy("device", window("time", size))
    return grouped.agg(count("*").alias("readings"), avg("temperature").alias("temperature"))


def count_committed(rival: EngineRival | NativeRival) -> int:
    """Return the number of committed records."""
    return sum(end - start for _, spans in list(rival.committed) for _, start, end in spans)


def wait_until_read(rival: EngineRival | NativeRival, records: int) -> None:
    """Wait until this many records are committed."""
    deadline = time.monotonic() + READ_TIMEOUT_S
    while count_committed(rival) < records:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count_committed(rival)} of {records} records after {READ_TIMEOUT_S:g} s")
        time.sleep(0.005)


def now_ms() -> int:
    """Return the current time in milliseconds."""
    return time.time_ns() // 1_000_000


def make_reading(number: int, keys: int, at: int) -> bytes:
    """Return one reading as JSON."""
    return json.dumps({"device": f"d{number % keys}", "at": at, "temperature": number % 800 / 10}).encode()
