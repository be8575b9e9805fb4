"""A stream at work in a test: fed by a real producer, awaited by what it has committed, read as whole tables."""

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

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host_settings import STANDALONE_SETTINGS
from penstock.engine.plan import Plan
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.parse.avro import SchemaLookup, refuse_without_registry
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.storage.hadoop_settings import s3a_read_settings
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {"aws.accessKeyId": "AWS_ACCESS_KEY_ID", "aws.secretAccessKey": "AWS_SECRET_ACCESS_KEY"}
PATIENCE_S = 90
ASKED_EVERY_S = 0.1


@dataclass
class Progress:
    """What a stream has committed, and who waits for more of it."""

    outcomes: list[BatchOutcome] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def told(self, outcome: BatchOutcome) -> None:
        with self.changed:
            if all(each.batch_id != outcome.batch_id for each in self.outcomes):
                self.outcomes.append(outcome)
            self.changed.notify_all()

    @property
    def read(self) -> int:
        return sum(account.read for outcome in self.outcomes for account in outcome.accounts)

    def wait_for(self, records: int, stream: LiveStream) -> None:
        """Wait until so many are read; a stream that fails tells nobody, so it is asked from time to time."""
        deadline = time.monotonic() + PATIENCE_S
        with self.changed:
            while self.read < records:
                failure = stream.failure()
                if failure is not None:
                    raise failure
                assert time.monotonic() < deadline, f"{self.read} of {records} records after {PATIENCE_S} s"
                self.changed.wait(ASKED_EVERY_S)
        failure = stream.failure()
        if failure is not None:
            raise failure


@dataclass
class Running:
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
    elsewhere: StoragePath | None = None
    """Where the tables are, if not in the folder."""

    @property
    def warehouse(self) -> StoragePath:
        return self.elsewhere or self.folder / "warehouse"

    def start(self, *, reading: bool = True) -> LiveStream:
        self.epoch += 1
        settings = STANDALONE_SETTINGS.model_copy(
            update={"driver_budget_mb": self.budget_mb, "poison_limit": self.poison_limit}
        )
        config = StreamConfig(
            BrokerAccess(self.broker.bootstrap), self.warehouse, settings, schema_lookup=self.schemas
        )
        right = WriteFence(self.plan.name, self.epoch, lambda: True)
        stream = LiveStream(
            self.plan,
            self.session,
            self.folder / "stream",
            config,
            right,
            self.progress.told,
            lambda: self.clock,
        )
        stream.start(reading=reading)
        return stream

    def table(self, name: str) -> pa.Table:
        return pa.table(open_delta_table(self.warehouse / name).to_pyarrow_table())

    def until_read(self, records: int) -> None:
        """Start, read so many records in all, and drain."""
        stream = self.start()
        try:
            self.progress.wait_for(records, stream)
        finally:
            stream.drain()


def reads_from(session: "SparkSession", place: StoragePath) -> None:
    """Have a session that runs already read tables there."""
    conf = session.sparkContext._jsc.hadoopConfiguration()
    for name, value in s3a_read_settings(place).items():
        conf.set(name.removeprefix("spark.hadoop."), value)
    for name, variable in KEYS.items():  # a Java machine that runs sees no variables that were set since
        session._jvm.java.lang.System.setProperty(name, os.environ[variable])


def send(
    broker: LocalBroker,
    topic: str,
    records: Iterable[Mapping[str, Any] | bytes | None],
    partition: int = 0,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> None:
    """Send records, as JSON where they are not bytes already; all are acknowledged when this returns."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "enable.idempotence": True})
    failed: list[Any] = []
    for record in records:
        value = record if record is None or isinstance(record, bytes) else json.dumps(record).encode()
        producer.produce(
            topic,
            value,
            partition=partition,
            headers=headers,
            on_delivery=lambda e, _: failed.append(e) if e else None,
        )
    assert producer.flush(30) == 0
    assert not any(failed)
