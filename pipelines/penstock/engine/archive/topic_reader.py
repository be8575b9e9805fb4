"""Reads a topic from given offsets, and explains every offset without a record.

Aborted records are read too, because other readers see them unless they read committed records only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.core.kafka_offsets import fetch_end_offsets, fetch_first_offsets
from penstock.core.kafka_topics import fetch_topic_ids
from penstock.engine.archive.archive_rows import OffsetGap, PartitionSlice
from penstock.engine.errors import ArchiveError

BROKER_TIMEOUT_S = 10.0
MAX_POLL_RECORDS = 5_000
PARTITION_DISCOVERY_INTERVAL_MS = 5_000
GAP_EXPIRED, GAP_COMPACTION, GAP_TRANSACTION = "expired", "compaction", "transaction"
_PARTITION_END_CODE, _OFFSET_GONE_CODE = "_PARTITION_EOF", "_AUTO_OFFSET_RESET"
_CONSUMER_SETTINGS: dict[str, str | int | bool] = {
    "group.id": "penstock-archive",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "queued.max.messages.kbytes": 32_768,
    "log_level": 2,
}


def fetch_topic_id(client_options: Mapping[str, str], topic: str) -> str:
    """Return a topic's id, which changes when it is created again. Raises ArchiveError if it does not exist."""
    try:
        return fetch_topic_ids(AdminClient(dict(client_options)), [topic], BROKER_TIMEOUT_S)[topic]
    except KafkaException as error:
        raise ArchiveError(
            f"topic {topic} at {client_options['bootstrap.servers']} cannot be archived: {error.args[0].str()}; "
            "is the broker up? `penstock topics apply` creates a missing topic"
        ) from error


@dataclass
class TopicReader:
    """Reads every partition of a topic from the end of the archive.

    With `compacted`, offsets without a record count as compacted, because they look like transaction markers.
    """

    client: Mapping[str, str]
    topic: str
    archived_ends: Mapping[int, int]
    compacted: bool = False
    slices: dict[int, PartitionSlice] = field(default_factory=dict)
    record_count: int = 0
    byte_count: int = 0

    def __post_init__(self) -> None:
        self._consumer = Consumer({**_CONSUMER_SETTINGS, **self.client})
        self._next_offsets: dict[int, int] = {}
        self._discovered_at_ms: int | None = None

    def poll(self, timeout_s: float, now_ms: int) -> None:
        """Add the records that arrive within the timeout to `slices`."""
        if (
            self._discovered_at_ms is None
            or now_ms - self._discovered_at_ms >= PARTITION_DISCOVERY_INTERVAL_MS
        ):
            self._discovered_at_ms = now_ms
            self._discover_partitions()
        for message in self._consumer.consume(MAX_POLL_RECORDS, timeout_s):
            self._add_message(message)

    def start_batch(self) -> None:
        """Start a new batch: the last one is archived."""
        self.slices, self.record_count, self.byte_count = {}, 0, 0

    def count_lag(self) -> int:
        """Return how many offsets are beyond what was read, as far as the broker reported."""
        # The consumer knows these ends from its last fetch: no request is sent.
        high_watermarks = {
            partition: self._consumer.get_watermark_offsets(
                TopicPartition(self.topic, partition), cached=True
            )[1]
            for partition in self._next_offsets
        }
        return sum(
            max(high - self._next_offsets[partition], 0) for partition, high in high_watermarks.items()
        )

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _discover_partitions(self) -> None:
        topic_metadata = self._consumer.list_topics(self.topic, timeout=BROKER_TIMEOUT_S).topics[self.topic]
        new_partitions = [
            partition for partition in topic_metadata.partitions if partition not in self._next_offsets
        ]
        for partition in new_partitions:
            self._next_offsets[partition] = self._find_first_offset(partition)
        if new_partitions:
            assignment = [
                TopicPartition(self.topic, *position) for position in sorted(self._next_offsets.items())
            ]
            self._consumer.assign(assignment)

    def _find_first_offset(self, partition: int) -> int:
        """Return the first offset to read: the end of the archive, or the start of the topic if that is later."""
        partitions = [(self.topic, partition)]
        low = fetch_first_offsets(self._consumer, partitions, BROKER_TIMEOUT_S)[self.topic, partition]
        high = fetch_end_offsets(self._consumer, partitions, BROKER_TIMEOUT_S)[self.topic, partition]
        archived_end = self.archived_ends.get(partition, 0)
        if archived_end > high:
            raise ArchiveError(
                f"{self.topic} partition {partition} is archived up to offset {archived_end}, but ends at {high}: "
                "the broker lost records; restore them, or move the archive away to start again"
            )
        if archived_end < low:
            self._slice_of(partition, archived_end).gaps.append(OffsetGap(archived_end, low - 1, GAP_EXPIRED))
            self._slice_of(partition, archived_end).end = low
        return max(archived_end, low)

    def _add_message(self, message: Message) -> None:
        error = message.error()
        if error is not None and error.name() not in (_PARTITION_END_CODE, _OFFSET_GONE_CODE):
            raise KafkaException(error)
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if error is not None and error.name() == _OFFSET_GONE_CODE:
            self._reset_position(partition)
        elif offset >= self._next_offsets[partition]:
            self._record_gap(partition, offset)
            if error is None:
                self._append_message(partition, offset, message)

    def _record_gap(self, partition: int, offset: int) -> None:
        """Record the offsets before this one that have no record.

        None of them has expired: the broker reports expired offsets, and `_reset_position` handles them.
        """
        expected = self._next_offsets[partition]
        if offset > expected:
            partition_slice = self._slice_of(partition, expected)
            partition_slice.gaps.append(
                OffsetGap(expected, offset - 1, GAP_COMPACTION if self.compacted else GAP_TRANSACTION)
            )
            partition_slice.end = self._next_offsets[partition] = offset

    def _append_message(self, partition: int, offset: int, message: Message) -> None:
        partition_slice = self._slice_of(partition, offset)
        partition_slice.messages.append(message)
        partition_slice.end = self._next_offsets[partition] = offset + 1
        self.record_count += 1
        self.byte_count += len(message.value() or b"") + len(message.key() or b"")

    def _reset_position(self, partition: int) -> None:
        """Continue from the first available offset: the next one has expired."""
        self.archived_ends = {**self.archived_ends, partition: self._next_offsets[partition]}
        self._next_offsets[partition] = self._find_first_offset(partition)
        self._consumer.seek(TopicPartition(self.topic, partition, self._next_offsets[partition]))

    def _slice_of(self, partition: int, start: int) -> PartitionSlice:
        return self.slices.setdefault(partition, PartitionSlice(start, start))
