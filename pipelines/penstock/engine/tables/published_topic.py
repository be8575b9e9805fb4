"""A Kafka topic that receives each batch exactly once, for consumers with `isolation.level=read_committed`.

The rows of a batch are first written into a file, and the outcome of the batch names it. Later one Kafka
transaction sends all rows, and commits the batch id as the offset of a consumer group. A second attempt finds the
batch id and sends nothing. The transactional id fences a host that lost its lease.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.engine.errors import PublishError, TableOwnedError
from penstock.engine.operators.changelog.published_panes import WATERMARK_KIND
from penstock.engine.plan.changelog import PANE_KIND_COLUMN
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import write_text
from penstock.engine.tables.published_rows import OutgoingRecord, encode_rows
from penstock.engine.tables.staged_target import StagedTarget
from penstock.engine.tables.table_owner import TableClaim, TableOwner

BROKER_TIMEOUT_S = 30.0
COORDINATOR_RETRY_S = 0.1
COORDINATOR_UNAVAILABLE_CODES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Errors of a broker while the coordinator of a group moves or loads."""

TRANSACTION_TIMEOUT_MS = 60_000
ANY_PARTITION = -1
"""The client chooses the partition by the key."""


class PublishedTopic(StagedTarget):
    """One topic. `application` is the stream that writes it; the rows of a batch have the columns of `key`."""

    def __init__(
        self,
        topic: str,
        key: Sequence[str],
        folder: StoragePath,
        application: str,
        client_config: Mapping[str, str],
    ) -> None:
        super().__init__(folder, application)
        self.topic = topic
        self._key = key
        self._client_config = client_config
        self._cached_transactions: TopicTransactions | None = None
        self._owner: TableOwner | None = None

    def claim(self, claim: TableClaim) -> None:
        """Claim the topic. The folder names its stream, and the broker the installation whose batches it has."""
        super().claim(claim)
        self._owner = claim.owner

    def count_result_rows(self, rows: pa.Table) -> int:
        """Return the number of panes; the watermark that ends a batch is none."""
        pane_count: int = pc.sum(pc.not_equal(rows.column(PANE_KIND_COLUMN), WATERMARK_KIND)).as_py()
        return pane_count

    def read_last_batch(self) -> int:
        """Return the newest batch recorded as sent: the broker deletes a group that is idle for days."""
        return (
            int(json.loads(self._sent_batch_path.read_text("utf-8"))["batch"])
            if self._sent_batch_path.exists()
            else -1
        )

    def apply(self, batch_id: int, rows: pa.Table) -> bool:
        """Send a batch's rows; return False when the broker has them. Raises PublishError on failure."""
        try:
            was_sent = self._send_batch(batch_id, rows)
        except KafkaException as error:
            self._cached_transactions = None
            raise PublishError(self.topic, f"batch {batch_id} could not be sent ({error})") from error
        write_text(self._sent_batch_path, json.dumps({"batch": batch_id}))
        return was_sent

    def _send_batch(self, batch_id: int, rows: pa.Table) -> bool:
        if self._cached_transactions is None:
            self._cached_transactions = TopicTransactions(
                self.topic, self.application, self._client_config, self._owner
            )
        if batch_id <= self._cached_transactions.read_last_batch():
            return False
        self._cached_transactions.send(batch_id, encode_rows(rows, self._key))
        return True

    @property
    def _sent_batch_path(self) -> StoragePath:
        return self.folder / f"{self.application}.sent.json"


class TopicTransactions:
    """The transactions of one stream into one topic. Opening it aborts an open transaction of another host.

    The committed offset carries the owner, so another installation with a stream of this name is refused before it
    aborts anything. Offsets of release 0.1.0 carry none.
    """

    def __init__(
        self,
        topic: str,
        application: str,
        client_config: Mapping[str, str],
        owner: TableOwner | None = None,
    ) -> None:
        self._topic = topic
        self._owner = owner
        transactional_id = f"penstock-{application}-{topic}"
        self._refuse_other_owner(client_config, transactional_id)
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
        committed = self._read_committed(self._consumer)
        self._check_owner(committed)
        return committed.offset - 1 if committed.offset >= 0 else -1

    def _refuse_other_owner(self, client_config: Mapping[str, str], group: str) -> None:
        """Raise TableOwnedError if the last batch is of another owner; do not wait for an open transaction."""
        if self._owner is None:
            return
        settings = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
        consumer = Consumer({**client_config, **settings})
        try:
            self._check_owner(self._read_committed(consumer))
        finally:
            consumer.close()

    def _check_owner(self, committed: TopicPartition) -> None:
        if self._owner is not None and committed.offset >= 0 and committed.metadata:
            owner = msgspec.json.decode(committed.metadata, type=TableOwner)
            if not owner.is_same_writer(self._owner):
                raise TableOwnedError(
                    f"published/{self._topic}", str(owner), str(self._owner), self._owner.stream
                )

    def _read_committed(self, consumer: Consumer) -> TopicPartition:
        """Return the committed offset, the batch id after the last batch, with the owner as its metadata."""
        deadline = time.monotonic() + BROKER_TIMEOUT_S
        while True:
            try:
                (committed,) = consumer.committed([TopicPartition(self._topic, 0)], timeout=BROKER_TIMEOUT_S)
            except KafkaException as error:
                # A broker that has just become the coordinator needs a moment to load the group.
                if error.args[0].code() not in COORDINATOR_UNAVAILABLE_CODES or time.monotonic() > deadline:
                    raise
                time.sleep(COORDINATOR_RETRY_S)
            else:
                return committed

    def send(self, batch_id: int, records: Iterator[OutgoingRecord]) -> None:
        """Send records and their batch id in one transaction."""
        self._producer.begin_transaction()
        try:
            for record in records:
                for partition in self._partitions if record.key is None else [ANY_PARTITION]:
                    self._produce(record, partition)
            owner_json = "" if self._owner is None else msgspec.json.encode(self._owner).decode()
            batch_offset = [TopicPartition(self._topic, 0, batch_id + 1, owner_json)]
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
