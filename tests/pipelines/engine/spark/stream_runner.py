"""Runs a stream on a real broker, waits for its commits, and reads its tables."""

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import Producer
from tests.patience import PATIENCE_S

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host_settings import STANDALONE_SETTINGS
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.parse.writer_schemas import SchemaLookup, refuse_without_registry
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.storage.hadoop_settings import s3a_read_settings
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREDENTIAL_VARIABLES = {
    "aws.accessKeyId": "AWS_ACCESS_KEY_ID",
    "aws.secretAccessKey": "AWS_SECRET_ACCESS_KEY",
}
POLL_INTERVAL_S = 0.1


@dataclass
class Progress:
    """The outcomes that a stream has committed; `wait_for` blocks until enough records are read."""

    outcomes: list[BatchOutcome] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def record_outcome(self, outcome: BatchOutcome) -> None:
        with self.changed:
            if all(each.batch_id != outcome.batch_id for each in self.outcomes):
                self.outcomes.append(outcome)
            self.changed.notify_all()

    @property
    def records_read(self) -> int:
        return sum(account.read for outcome in self.outcomes for account in outcome.accounts)

    def wait_for(self, records: int, stream: LiveStream) -> None:
        """Wait until so many records are read in all; raise the failure of the stream if it has one."""
        deadline = time.monotonic() + PATIENCE_S
        with self.changed:
            while self.records_read < records:
                failure = stream.failure()
                if failure is not None:
                    raise failure
                assert time.monotonic() < deadline, (
                    f"{self.records_read} of {records} records after {PATIENCE_S} s"
                )
                self.changed.wait(POLL_INTERVAL_S)
        failure = stream.failure()
        if failure is not None:
            raise failure


@dataclass
class StreamRunner:
    """A stream that can be started, drained, and started again over the same folder."""

    plan: Plan
    session: "SparkSession"
    broker: LocalBroker
    folder: Path
    clock: int = 1_000_000
    epoch: int = 0
    budget_mb: int = 256
    poison_limit: int = 0
    progress: Progress = field(default_factory=Progress)
    schemas: SchemaLookup = refuse_without_registry
    warehouse_override: StoragePath | None = None
    """The warehouse, if it is not in the folder."""

    @property
    def warehouse(self) -> StoragePath:
        return self.warehouse_override or self.folder / "warehouse"

    def start(self, *, reading: bool = True) -> LiveStream:
        self.epoch += 1
        settings = STANDALONE_SETTINGS.model_copy(
            update={"driver_budget_mb": self.budget_mb, "poison_limit": self.poison_limit}
        )
        config = StreamConfig(
            BrokerAccess(self.broker.bootstrap), self.warehouse, settings, schema_lookup=self.schemas
        )
        fence = WriteFence(self.plan.name, self.epoch, lambda: True)
        stream = LiveStream(
            self.plan,
            self.session,
            self.folder / "stream",
            config,
            fence,
            self.progress.record_outcome,
            lambda: self.clock,
        )
        stream.start(reading=reading)
        return stream

    def table(self, name: str) -> pa.Table:
        return pa.table(open_delta_table(self.warehouse / name).to_pyarrow_table())

    def run_until_read(self, records: int) -> None:
        """Start the stream, wait until it has read so many records in all, and drain it."""
        stream = self.start()
        try:
            self.progress.wait_for(records, stream)
        finally:
            stream.drain()


def set_s3a_options(session: "SparkSession", path: StoragePath) -> None:
    """Set the S3A options of a running session, so that it reads tables below a path."""
    conf = session.sparkContext._jsc.hadoopConfiguration()
    for name, value in s3a_read_settings(path).items():
        conf.set(name.removeprefix("spark.hadoop."), value)
    for (
        name,
        variable,
    ) in CREDENTIAL_VARIABLES.items():  # a running JVM does not see variables that were set later
        session._jvm.java.lang.System.setProperty(name, os.environ[variable])


def send(
    broker: LocalBroker,
    topic: str,
    records: Iterable[Mapping[str, Any] | bytes | None],
    partition: int = 0,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> None:
    """Send records, as JSON unless they are bytes, and wait until all are acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "enable.idempotence": True})
    failed: list[Any] = []
    for record in records:
        value = record if record is None or isinstance(record, bytes) else json.dumps(record).encode()
        producer.produce(
            topic,
            value,
            partition=partition,
            headers=headers,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert not any(failed)
