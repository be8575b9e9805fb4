"""The archive holds every offset of a topic once, as another client reads it."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from tests.patience import PATIENCE_S

from penstock.core.kafka_client import BrokerAccess
from penstock.core.waiting import wait_until
from penstock.engine import storage
from penstock.engine.archive.archive_names import archive_name, ledger_path, records_path
from penstock.engine.archive.archive_stream import ArchiveConfig, ArchiveStream
from penstock.engine.archive.archive_table import DAY_COLUMN, ArchiveTable, utc_day
from penstock.engine.archive.completeness_check import find_disagreements
from penstock.engine.archive.topic_archive import TopicArchive
from penstock.engine.archive.topic_reader import TopicReader, fetch_topic_id
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import ArchiveError, WriterFencedError
from penstock.engine.tables.batch_table import BatchTable
from penstock.infra.local_broker import LocalBroker

pytestmark = pytest.mark.kafka
NOON = 1_800_000_000_000
DAY_MS = 86_400_000


@dataclasses.dataclass
class ArchivedTopic:
    """A topic and its archive."""

    broker: LocalBroker
    topic: str
    folder: Path
    outcomes: list[BatchOutcome] = dataclasses.field(default_factory=list)
    compacted: bool = False
    warehouse_override: storage.StoragePath | None = None

    @property
    def client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    @property
    def warehouse(self) -> storage.StoragePath:
        return self.warehouse_override or self.folder / "warehouse"

    def open_archive(self, epoch: int = 1) -> TopicArchive:
        fence = WriteFence(archive_name(self.topic), epoch, lambda: True)
        topic_id = fetch_topic_id(self.client, self.topic)
        archive = TopicArchive(
            self.topic, topic_id, self.folder / "stream", self.warehouse, fence, self.outcomes.append
        )
        archive.resume()
        return archive

    def archive_all(self, archive: TopicArchive, batch_size: int = 10**9, clock: int = NOON) -> None:
        """Archive all records of the topic in batches of about this size."""
        reader = TopicReader(self.client, self.topic, archive.end_offsets, self.compacted)
        try:
            while any(
                archive.end_offsets.get(partition, 0) < end for partition, end in self.end_offsets().items()
            ):
                reader.poll(0.05, clock)
                if reader.record_count >= batch_size or reader.count_lag() == 0:
                    archive.archive_batch(reader.slices, clock, reader.count_lag())
                    reader.start_batch()
        finally:
            reader.close()

    def end_offsets(self) -> dict[int, int]:
        reader = Consumer({**self.client, "group.id": "ends"})
        try:
            partitions = reader.list_topics(self.topic, timeout=PATIENCE_S).topics[self.topic].partitions
            partitions_by_number = {
                partition: TopicPartition(self.topic, partition) for partition in partitions
            }
            return {
                p: reader.get_watermark_offsets(partition, timeout=PATIENCE_S)[1]
                for p, partition in partitions_by_number.items()
            }
        finally:
            reader.close()

    def read_rows(self) -> list[dict[str, Any]]:
        table = DeltaTable(self.warehouse / records_path(self.topic)).to_pyarrow_table()
        return table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()

    def list_gaps(self) -> list[tuple[int, int, int, str]]:
        rows = DeltaTable(self.warehouse / ledger_path(self.topic)).to_pyarrow_table().to_pylist()
        found = [(row["partition"], *gap.values()) for row in rows for gap in row["gaps"]]
        return sorted(found)

    def check_content(self) -> None:
        """Compare the archive with the topic and with its ledger."""
        assert [to_tuple(row) for row in self.read_rows()] == self.read_topic()
        assert find_disagreements(self.warehouse, self.topic) == []

    def read_topic(self) -> list[tuple[Any, ...]]:
        reader = Consumer(
            {
                **self.client,
                "group.id": "check",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_uncommitted",
            }
        )
        open_partitions = set(self.end_offsets())
        reader.assign([TopicPartition(self.topic, partition, 0) for partition in open_partitions])
        found = []
        while open_partitions:
            for message in reader.consume(1_000, 0.05):
                if message.error():
                    open_partitions.discard(message.partition())
                else:
                    address = (message.partition(), message.offset(), message.timestamp()[1])
                    headers = [(name, value) for name, value in message.headers() or []]
                    found.append((*address, message.key(), message.value(), headers))
        reader.close()
        return sorted(found, key=lambda record: record[:2])


def to_tuple(row: dict[str, Any]) -> tuple[Any, ...]:
    timestamp_ms = round(row["timestamp"].timestamp() * 1_000)
    headers = [(header["name"], header["value"]) for header in row["headers"]]
    return row["partition"], row["offset"], timestamp_ms, row["key"], row["value"], headers


@pytest.fixture
def create_archived(broker: LocalBroker, tmp_path: Path) -> Callable[..., ArchivedTopic]:
    def create(name: str, partitions: int = 3, **settings: str) -> ArchivedTopic:
        topic = f"archived-{name}"
        broker.create_topic(topic, partitions, settings)
        return ArchivedTopic(broker, topic, tmp_path)

    return create


def produce_records(
    archived: ArchivedTopic, number: int, first: int = 0, producer: Producer | None = None
) -> None:
    """Produce records of every kind: no key, no value, empty, with headers, with old timestamps."""
    producer = producer or Producer({**archived.client, "linger.ms": 5})
    for n in range(first, first + number):
        producer.produce(
            archived.topic,
            None if n % 11 == 0 else b"\xff%d" % n * (n % 5),
            None if n % 7 == 0 else b"key-%d" % (n % 20),
            n % 3,
            timestamp=1_000 + n if n % 13 == 0 else 0,
            headers=[("trace", b"\x00%d" % n), ("trace", None)] if n % 4 == 0 else None,
        )
    producer.flush()


def test_every_record_is_archived_unchanged_in_any_number_of_batches(
    create_archived: Callable[..., ArchivedTopic],
):
    archived = create_archived("kept")
    produce_records(archived, 3_000)
    archived.archive_all(archived.open_archive(), batch_size=500)
    produce_records(archived, 1_000, first=3_000)
    archived.archive_all(archived.open_archive())
    archived.check_content()
    assert archived.list_gaps() == []
    assert sum(outcome.archived for outcome in archived.outcomes[-1:]) == 1_000


def test_offsets_of_transaction_markers_are_explained(create_archived: Callable[..., ArchivedTopic]):
    archived = create_archived("marked")
    producer = Producer({**archived.client, "transactional.id": "writer"})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        produce_records(archived, 60, producer=producer)
        end(60)
    wait_until(
        lambda: set(archived.end_offsets().values()) == {63},
        PATIENCE_S,
        "the markers of the last transaction",
    )
    archived.archive_all(archived.open_archive())
    archived.check_content()
    # Each transaction has a marker in each partition, after its 20 records. Aborted records are archived, too.
    expected = [(partition, end, end, "transaction") for partition in range(3) for end in (20, 41, 62)]
    assert archived.list_gaps() == expected


def test_offsets_that_expired_before_archiving_are_explained(create_archived: Callable[..., ArchivedTopic]):
    archived = create_archived("forgotten")
    produce_records(archived, 300)
    archived.archive_all(archived.open_archive())
    produce_records(archived, 300, first=300)
    admin = AdminClient(archived.client)
    for future in admin.delete_records([TopicPartition(archived.topic, 1, 150)]).values():
        future.result(PATIENCE_S)
    archived.archive_all(archived.open_archive())
    assert archived.list_gaps() == [(1, 100, 149, "expired")]
    assert find_disagreements(archived.warehouse, archived.topic) == []
    assert len(archived.read_rows()) == 550


def test_offsets_that_compaction_removed_are_explained(tmp_path: Path, kafka_jar_paths: list[Path]):
    broker = LocalBroker.in_directory(tmp_path / "broker", kafka_jar_paths)
    broker_settings = (("log.cleaner.backoff.ms", "100"),)
    settings = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
    with LocalBroker(
        dataclasses.replace(broker.config, properties=broker_settings), kafka_jar_paths
    ) as running:
        running.create_topic("compacted", 1, settings)
        archived = ArchivedTopic(running, "compacted", tmp_path, compacted=True)
        producer = Producer(archived.client)
        for number in range(12):
            producer.produce("compacted", b"%d" % number, b"key-%d" % (number % 2), 0)
            producer.flush()
        wait_until(lambda: len(archived.read_topic()) < 8, PATIENCE_S, "the compaction of old segments")
        archived.archive_all(archived.open_archive())
        kept = {row["offset"] for row in archived.read_rows()}
        removed = {n for _, first, last, _ in archived.list_gaps() for n in range(first, last + 1)}
        assert removed
        assert {reason for *_, reason in archived.list_gaps()} == {"compaction"}
        assert kept | removed == set(range(12))
        assert find_disagreements(archived.warehouse, "compacted") == []


class Killed(BaseException):
    """Simulates the end of the process."""


STEPS = (
    (ArchiveTable, "write"),
    (BatchTable, "write_file"),
    (BatchJournal, "commit_outcome"),
    (BatchTable, "commit"),
)


def test_an_archive_killed_at_any_step_is_complete_afterwards(
    create_archived: Callable[..., ArchivedTopic], monkeypatch: pytest.MonkeyPatch
):
    archived = create_archived("cut")
    steps_left = [0]

    def count_step() -> None:
        steps_left[0] -= 1
        if steps_left[0] == 0:
            raise Killed

    def wrap_step(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapped(*arguments: Any) -> Any:
            count_step()
            result = original(*arguments)
            count_step()
            return result

        monkeypatch.setattr(owner, name, wrapped)

    for owner, name in STEPS:
        wrap_step(owner, name)
    kills = 0
    for kill_at in range(1, 18):
        produce_records(archived, 30, first=30 * kill_at)
        steps_left[0] = kill_at
        try:
            archived.archive_all(archived.open_archive())
        except Killed:
            kills += 1
    # The steps of one run: finish the last batch, then write files, commit the outcome and commit the tables.
    assert kills >= 12
    steps_left[0] = 0
    archived.archive_all(archived.open_archive())
    monkeypatch.undo()
    archived.check_content()
    batches = [row["batch_id"] for row in archived.read_rows()]
    assert max(batches) + 1 <= len(archived.outcomes)


def test_a_fenced_writer_stops(create_archived: Callable[..., ArchivedTopic]):
    archived = create_archived("fought")
    produce_records(archived, 300)
    old, new = archived.open_archive(epoch=1), archived.open_archive(epoch=2)
    archived.archive_all(new, batch_size=100)
    produce_records(archived, 30, first=300)
    with pytest.raises(WriterFencedError):
        archived.archive_all(old)
    archived.archive_all(archived.open_archive(epoch=3))
    archived.check_content()


def test_a_recreated_topic_is_refused(create_archived: Callable[..., ArchivedTopic]):
    archived = create_archived("remade")
    produce_records(archived, 30)
    archived.archive_all(archived.open_archive())
    admin = AdminClient(archived.client)
    admin.delete_topics([archived.topic])[archived.topic].result(PATIENCE_S)
    recreate_topic(archived)
    produce_records(archived, 300)
    with pytest.raises(ArchiveError, match="created again"):
        archived.open_archive()


def recreate_topic(archived: ArchivedTopic) -> None:
    def try_to_create() -> bool:
        try:
            archived.broker.create_topic(archived.topic, 3)
        except KafkaException:
            return False
        return True

    wait_until(try_to_create, PATIENCE_S, "the deletion of the old topic")


def test_a_table_without_its_journal_is_refused(create_archived: Callable[..., ArchivedTopic]):
    archived = create_archived("bare")
    produce_records(archived, 30)
    archived.archive_all(archived.open_archive())
    (archived.folder / "stream").rename(archived.folder / "elsewhere")
    with pytest.raises(ArchiveError, match="restore the journal"):
        archived.open_archive()


def test_a_missing_topic_is_refused(broker: LocalBroker):
    with pytest.raises(ArchiveError, match="penstock topics apply"):
        fetch_topic_id({"bootstrap.servers": broker.bootstrap}, "nowhere")


def test_the_files_of_a_past_day_are_compacted(create_archived: Callable[..., ArchivedTopic]):
    archived = create_archived("merged")
    for turn in range(12):
        produce_records(archived, 30, first=turn * 30)
        archived.archive_all(archived.open_archive(), clock=NOON)
    archive = archived.open_archive()
    produce_records(archived, 30, first=360)
    archived.archive_all(archive, clock=NOON + DAY_MS)
    archived.check_content()
    table = DeltaTable(archived.warehouse / records_path(archived.topic))
    assert len(table.file_uris(file_pruning_predicate=[(DAY_COLUMN, "=", utc_day(NOON))])) == 1


def test_a_drained_stream_has_archived_all_records_that_it_read(
    create_archived: Callable[..., ArchivedTopic],
):
    archived = create_archived("streamed")
    config = ArchiveConfig(
        BrokerAccess(archived.broker.bootstrap),
        archived.folder / "stream",
        archived.warehouse,
        batch_interval_ms=0,
    )
    ticks = itertools.count(NOON, 1_000)
    fence = WriteFence(archive_name(archived.topic), 1, lambda: True)
    for turn in range(2):
        stream = ArchiveStream(archived.topic, config, fence, archived.outcomes.append, lambda: next(ticks))
        stream.start()
        produce_records(archived, 600, first=turn * 600)
        wait_until(
            lambda: archived.outcomes and sum(archived.outcomes[-1].ends.values()) >= 300,
            PATIENCE_S,
            "a batch",
        )
        stream.drain()
        assert stream.failure() is None
    stream = ArchiveStream(archived.topic, config, fence, archived.outcomes.append, lambda: next(ticks))
    stream.start()
    wait_until(lambda: sum(archived.outcomes[-1].ends.values()) == 1_200, PATIENCE_S, "the rest")
    stream.drain()
    archived.check_content()
