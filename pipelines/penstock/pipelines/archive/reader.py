"""Reading a topic from offsets on, so that nothing that it ever held goes unnoticed.

Aborted records are read too: other readers of the topic see them, unless they are told not to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.pipelines.archive.rows import Gap, Taken
from penstock.pipelines.errors import ArchiveError

ANSWER_SECONDS = 10.0
AT_ONCE = 5_000
LOOK_EVERY_MS = 5_000
EXPIRED, COMPACTION, TRANSACTION = "expired", "compaction", "transaction"
_END, _GONE = "_PARTITION_EOF", "_AUTO_OFFSET_RESET"
_READING: dict[str, str | int | bool] = {
    "group.id": "penstock-archive",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "queued.max.messages.kbytes": 32_768,
    "log_level": 2,
}


def topic_id(client: Mapping[str, str], topic: str) -> str:
    """Return the id by which a topic is told from another one of its name. ArchiveError where there is none."""
    admin = AdminClient(dict(client))
    try:
        asked = admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_SECONDS)
        return str(asked[topic].result(2 * ANSWER_SECONDS).topic_id)
    except KafkaException as error:
        raise ArchiveError(
            f"topic {topic} at {client['bootstrap.servers']} cannot be archived: {error.args[0].str()}; is the "
            "broker up? `penstock topics apply` makes the topic where there is none"
        ) from error


@dataclass
class TopicReader:
    """Reads every partition of a topic from where the archive ends.

    `compacted` says that the topic drops records whose key came again: then offsets without a record are put down
    to that, because nobody can tell them from the markers of transactions.
    """

    client: Mapping[str, str]
    topic: str
    ends: Mapping[int, int]
    compacted: bool = False
    taken: dict[int, Taken] = field(default_factory=dict)
    records: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        self._consumer = Consumer({**_READING, **self.client})
        self._next: dict[int, int] = {}
        self._looked_at: int | None = None

    def read(self, seconds: float, now: int) -> None:
        """Add what comes within so long to `taken`."""
        if self._looked_at is None or now - self._looked_at >= LOOK_EVERY_MS:
            self._looked_at = now
            self._look_for_partitions()
        for message in self._consumer.consume(AT_ONCE, seconds):
            self._add(message)

    def forget(self) -> None:
        """Begin a new batch: what was taken is in the archive."""
        self.taken, self.records, self.bytes = {}, 0, 0

    def lag(self) -> int:
        """Return how many offsets are beyond what was read, as far as the broker has told."""
        highs = {partition: self._watermarks(partition, cached=True)[1] for partition in self._next}
        return sum(max(high - self._next[partition], 0) for partition, high in highs.items())

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()

    def _look_for_partitions(self) -> None:
        found = self._consumer.list_topics(self.topic, timeout=ANSWER_SECONDS).topics[self.topic]
        fresh = [partition for partition in found.partitions if partition not in self._next]
        for partition in fresh:
            self._next[partition] = self._first(partition)
        if fresh:
            places = [TopicPartition(self.topic, *place) for place in sorted(self._next.items())]
            self._consumer.assign(places)

    def _first(self, partition: int) -> int:
        """Where to begin: where the archive ends, or where the topic begins if that is later."""
        low, high = self._watermarks(partition)
        end = self.ends.get(partition, 0)
        if end > high:
            raise ArchiveError(
                f"{self.topic} partition {partition} was archived up to offset {end}, and ends at {high}: the "
                "broker lost records; bring them back, or move the archive away to begin anew"
            )
        if end < low:
            self._of(partition, end).gaps.append(Gap(end, low - 1, EXPIRED))
            self._of(partition, end).end = low
        return max(end, low)

    def _add(self, message: Message) -> None:
        error = message.error()
        if error is not None and error.name() not in (_END, _GONE):
            raise KafkaException(error)
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if error is not None and error.name() == _GONE:
            self._begin_again(partition)
        elif offset >= self._next[partition]:
            self._pass_to(partition, offset)
            if error is None:
                self._take(partition, offset, message)

    def _pass_to(self, partition: int, offset: int) -> None:
        """Note the offsets before this one that hold no record.

        None of them can have expired: who asks for one that has is told so, and comes by `_begin_again`.
        """
        expected = self._next[partition]
        if offset > expected:
            taken = self._of(partition, expected)
            taken.gaps.append(Gap(expected, offset - 1, COMPACTION if self.compacted else TRANSACTION))
            taken.end = self._next[partition] = offset

    def _take(self, partition: int, offset: int, message: Message) -> None:
        taken = self._of(partition, offset)
        taken.messages.append(message)
        taken.end = self._next[partition] = offset + 1
        self.records += 1
        self.bytes += len(message.value() or b"") + len(message.key() or b"")

    def _begin_again(self, partition: int) -> None:
        """What was to be read next is gone meanwhile: go on with what is there."""
        self.ends = {**self.ends, partition: self._next[partition]}
        self._next[partition] = self._first(partition)
        self._consumer.seek(TopicPartition(self.topic, partition, self._next[partition]))

    def _of(self, partition: int, start: int) -> Taken:
        return self.taken.setdefault(partition, Taken(start, start))

    def _watermarks(self, partition: int, *, cached: bool = False) -> tuple[int, int]:
        place = TopicPartition(self.topic, partition)
        low, high = self._consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS, cached=cached)
        return low, high
