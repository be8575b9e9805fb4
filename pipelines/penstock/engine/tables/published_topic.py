"""A Kafka topic that receives each batch exactly once, for consumers with `isolation.level=read_committed`.

The rows of a batch are first written into a file, and the outcome of the batch names it. Later one Kafka
transaction sends all rows, and commits the batch id as the offset of a consumer group. A second attempt finds the
batch id and sends nothing. The transactional id fences a host that lost its lease.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.engine.errors import PublishError
from penstock.engine.operators.changelog.published_panes import WATERMARK_KIND
from penstock.engine.plan.changelog import PANE_KIND_COLUMN
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import make_parent_folder, read_parquet, write_parquet, write_text
from penstock.engine.tables.table_change import DataFile, TableChange

PUBLISHED_FOLDER = "published"
BROKER_TIMEOUT_S = 30.0
COORDINATOR_RETRY_S = 0.1
COORDINATOR_UNAVAILABLE_CODES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Errors of a broker while the coordinator of a group moves or loads."""

TRANSACTION_TIMEOUT_MS = 60_000
TIME_FIELDS = ("window_start", "window_end", "watermark", "replaced_by_start", "replaced_by_end")


ANY_PARTITION = -1
"""The client chooses the partition by the key."""


@dataclass(frozen=True)
class OutgoingRecord:
    """A record to send; without a key it goes to every partition."""

    key: bytes | None
    value: bytes


class PublishedTopic:
    """One topic. `application` is the stream that writes it."""

    def __init__(
        self,
        topic: str,
        stage: Stage,
        folder: StoragePath,
        application: str,
        client_config: Mapping[str, str],
    ) -> None:
        self.topic = topic
        self.stage = stage.name
        self._key = stage.key
        self._folder = folder
        self._application = application
        self._client_config = client_config
        self._cached_transactions: TopicTransactions | None = None

    def write(self, rows: pa.Table, batch_id: int, clock: int) -> TableChange:
        """Write a batch's rows into a new file, which is not read before an outcome names it."""
        if not rows.num_rows:
            return TableChange()
        path = self._folder / f"{self._application}-{batch_id:012d}-{uuid4().hex[:8]}.parquet"
        make_parent_folder(path)
        file = DataFile(path.name, write_parquet(rows, path), rows.num_rows, "", clock)
        pane_count = pc.sum(pc.not_equal(rows.column(PANE_KIND_COLUMN), WATERMARK_KIND)).as_py()
        return TableChange([file], (), pane_count)

    def discard(self, files: Iterable[DataFile]) -> None:
        """Remove the files of an attempt that failed before an outcome named them."""
        for file in files:
            (self._folder / file.path).unlink(missing_ok=True)

    def commit(self, batch_id: int, change: TableChange, clock: int) -> bool:
        """Send a batch's rows once; return False when they were sent already. Raises PublishError on failure."""
        del clock
        paths = [self._folder / file.path for file in change.adds]
        if batch_id <= self._read_sent_batch():
            was_sent = False
        else:
            try:
                was_sent = self._send_batch(batch_id, paths)
            except KafkaException as error:
                self._cached_transactions = None
                raise PublishError(self.topic, f"batch {batch_id} could not be sent ({error})") from error
            self._write_sent_batch(batch_id)
        for path in paths:
            path.unlink(missing_ok=True)
        return was_sent

    def _send_batch(self, batch_id: int, paths: list[StoragePath]) -> bool:
        transactions = self._open_transactions()
        if batch_id <= transactions.read_last_batch():
            return False
        rows = [row for path in paths for row in read_parquet(path).to_pylist()]
        transactions.send(batch_id, encode_rows(rows, self._key))
        return True

    def _open_transactions(self) -> "TopicTransactions":
        if self._cached_transactions is None:
            self._cached_transactions = TopicTransactions(self.topic, self._application, self._client_config)
        return self._cached_transactions

    @property
    def _sent_batch_path(self) -> StoragePath:
        return self._folder / f"{self._application}.sent.json"

    def _read_sent_batch(self) -> int:
        """Return the newest batch recorded as sent: the broker deletes a group that is idle for days."""
        return (
            int(json.loads(self._sent_batch_path.read_text("utf-8"))["batch"])
            if self._sent_batch_path.exists()
            else -1
        )

    def _write_sent_batch(self, batch_id: int) -> None:
        make_parent_folder(self._sent_batch_path)
        write_text(self._sent_batch_path, json.dumps({"batch": batch_id}))


def open_published_topics(
    plan: Plan, warehouse: StoragePath, client_config: Mapping[str, str]
) -> Iterator[tuple[str, PublishedTopic]]:
    """Yield the published topics of a plan, by the keys that outcomes use."""
    for stage in plan.stages:
        for sink in stage.topics:
            path = f"{PUBLISHED_FOLDER}/{sink.topic}"
            yield path, PublishedTopic(sink.topic, stage, warehouse / path, plan.name, client_config)


class TopicTransactions:
    """The transactions of one stream into one topic. Opening it aborts an open transaction of another host."""

    def __init__(self, topic: str, application: str, client_config: Mapping[str, str]) -> None:
        self._topic = topic
        transactional_id = f"penstock-{application}-{topic}"
        self._producer = Producer(
            {
                "partitioner": "murmur2_random",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 5,
                **client_config,
                "transactional.id": transactional_id,
                "enable.idempotence": True,
            }
        )
        self._consumer = Consumer(
            {**client_config, "group.id": transactional_id, "enable.auto.commit": False}
        )
        topic_metadata = self._producer.list_topics(topic, timeout=BROKER_TIMEOUT_S).topics[topic]
        if topic_metadata.error is not None or not topic_metadata.partitions:
            raise PublishError(topic, "the topic does not exist")
        self._partitions = sorted(topic_metadata.partitions)
        self._producer.init_transactions(BROKER_TIMEOUT_S)

    def read_last_batch(self) -> int:
        """Return the newest batch whose rows are committed; -1 before the first."""
        deadline = time.monotonic() + BROKER_TIMEOUT_S
        while True:
            try:
                (committed,) = self._consumer.committed(
                    [TopicPartition(self._topic, 0)], timeout=BROKER_TIMEOUT_S
                )
            except KafkaException as error:
                # A broker that has just become the coordinator needs a moment to load the group.
                if error.args[0].code() not in COORDINATOR_UNAVAILABLE_CODES or time.monotonic() > deadline:
                    raise
                time.sleep(COORDINATOR_RETRY_S)
            else:
                return committed.offset - 1 if committed.offset >= 0 else -1

    def send(self, batch_id: int, records: Iterator[OutgoingRecord]) -> None:
        """Send records and their batch id in one transaction."""
        self._producer.begin_transaction()
        try:
            for record in records:
                for partition in self._partitions if record.key is None else [ANY_PARTITION]:
                    self._produce(record, partition)
            batch_offset = [TopicPartition(self._topic, 0, batch_id + 1)]
            group = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(batch_offset, group, BROKER_TIMEOUT_S)
            self._producer.commit_transaction(BROKER_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._producer.abort_transaction(BROKER_TIMEOUT_S)
            raise

    def _produce(self, record: OutgoingRecord, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic, record.value, record.key, partition)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return


def encode_rows(rows: Sequence[Mapping[str, Any]], key: Sequence[str]) -> Iterator[OutgoingRecord]:
    """Yield rows as JSON records; the watermark that ends a batch has no key and goes to every partition."""
    for row in rows:
        value_json = msgspec.json.encode({name: _to_json_value(name, cell) for name, cell in row.items()})
        key_json = msgspec.json.encode([_to_json_value(name, row[name]) for name in key])
        yield OutgoingRecord(None if row[PANE_KIND_COLUMN] == WATERMARK_KIND else key_json, value_json)


def _to_json_value(name: str, value: Any) -> Any:
    """Return a value for JSON: unbounded times are null; NaN and infinities are texts that Spark can parse."""
    if name in TIME_FIELDS and value in (MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS):
        return None
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return [_to_json_value("", item) for item in value] if isinstance(value, list) else value
