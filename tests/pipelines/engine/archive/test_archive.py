"""The archive against the topic itself, as another client reads it: every offset once, whatever happens."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

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
class Place:
    """A topic, and where its archive is."""

    broker: LocalBroker
    topic: str
    folder: Path
    told: list[BatchOutcome] = dataclasses.field(default_factory=list)
    compacted: bool = False
    elsewhere: storage.StoragePath | None = None

    @property
    def client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    @property
    def warehouse(self) -> storage.StoragePath:
        return self.elsewhere or self.folder / "warehouse"

    def archive(self, epoch: int = 1) -> TopicArchive:
        right = WriteFence(archive_name(self.topic), epoch, lambda: True)
        which = fetch_topic_id(self.client, self.topic)
        archive = TopicArchive(
            self.topic, which, self.folder / "stream", self.warehouse, right, self.told.append
        )
        archive.resume()
        return archive

    def take_all(self, archive: TopicArchive, at_once: int = 10**9, clock: int = NOON) -> None:
        """Bring everything into the archive that the topic holds now, in batches of about so many records."""
        reader = TopicReader(self.client, self.topic, archive.end_offsets, self.compacted)
        try:
            while any(archive.end_offsets.get(partition, 0) < end for partition, end in self.ends().items()):
                reader.poll(0.05, clock)
                if reader.record_count >= at_once or reader.count_lag() == 0:
                    archive.archive_batch(reader.slices, clock, reader.count_lag())
                    reader.start_batch()
        finally:
            reader.close()

    def ends(self) -> dict[int, int]:
        reader = Consumer({**self.client, "group.id": "ends"})
        try:
            partitions = reader.list_topics(self.topic, timeout=30).topics[self.topic].partitions
            places = {partition: TopicPartition(self.topic, partition) for partition in partitions}
            return {p: reader.get_watermark_offsets(place, timeout=30)[1] for p, place in places.items()}
        finally:
            reader.close()

    def rows(self) -> list[dict[str, Any]]:
        table = DeltaTable(self.warehouse / records_path(self.topic)).to_pyarrow_table()
        return table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()

    def gaps(self) -> list[tuple[int, int, int, str]]:
        rows = DeltaTable(self.warehouse / ledger_path(self.topic)).to_pyarrow_table().to_pylist()
        found = [(row["partition"], *gap.values()) for row in rows for gap in row["gaps"]]
        return sorted(found)

    def check(self) -> None:
        """The archive holds what another client reads of the topic, and its ledger agrees."""
        assert [_plain(row) for row in self.rows()] == self.read()
        assert find_disagreements(self.warehouse, self.topic) == []

    def read(self) -> list[tuple[Any, ...]]:
        reader = Consumer(
            {
                **self.client,
                "group.id": "check",
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_uncommitted",
            }
        )
        open_partitions = set(self.ends())
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


def _plain(row: dict[str, Any]) -> tuple[Any, ...]:
    at = round(row["timestamp"].timestamp() * 1_000)
    headers = [(header["name"], header["value"]) for header in row["headers"]]
    return row["partition"], row["offset"], at, row["key"], row["value"], headers


@pytest.fixture
def make(broker: LocalBroker, tmp_path: Path) -> Callable[..., Place]:
    def place(name: str, partitions: int = 3, **settings: str) -> Place:
        topic = f"archived-{name}"
        broker.create_topic(topic, partitions, settings)
        return Place(broker, topic, tmp_path)

    return place


def fill(place: Place, number: int, first: int = 0, producer: Producer | None = None) -> None:
    """Records of every kind: without key, without value, empty, with headers, of strange times."""
    producer = producer or Producer({**place.client, "linger.ms": 5})
    for n in range(first, first + number):
        producer.produce(
            place.topic,
            None if n % 11 == 0 else b"\xff%d" % n * (n % 5),
            None if n % 7 == 0 else b"key-%d" % (n % 20),
            n % 3,
            timestamp=1_000 + n if n % 13 == 0 else 0,
            headers=[("trace", b"\x00%d" % n), ("trace", None)] if n % 4 == 0 else None,
        )
    producer.flush()


def test_every_record_is_kept_as_it_was_in_however_many_batches(make: Callable[..., Place]):
    place = make("kept")
    fill(place, 3_000)
    place.take_all(place.archive(), at_once=500)
    fill(place, 1_000, first=3_000)
    place.take_all(place.archive())
    place.check()
    assert place.gaps() == []
    assert sum(outcome.archived for outcome in place.told[-1:]) == 1_000


def test_offsets_of_transactions_markers_are_explained(make: Callable[..., Place]):
    place = make("marked")
    producer = Producer({**place.client, "transactional.id": "writer"})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        fill(place, 60, producer=producer)
        end(60)
    wait_until(lambda: set(place.ends().values()) == {63}, 30, "the markers of the last transaction")
    place.take_all(place.archive())
    place.check()
    # One marker for each transaction in each partition, after its twenty records; aborted records are kept, too.
    expected = [(partition, end, end, "transaction") for partition in range(3) for end in (20, 41, 62)]
    assert place.gaps() == expected


def test_offsets_that_expired_before_archiving_are_explained(make: Callable[..., Place]):
    place = make("forgotten")
    fill(place, 300)
    place.take_all(place.archive())
    fill(place, 300, first=300)
    admin = AdminClient(place.client)
    for future in admin.delete_records([TopicPartition(place.topic, 1, 150)]).values():
        future.result(30)
    place.take_all(place.archive())
    assert place.gaps() == [(1, 100, 149, "expired")]
    assert find_disagreements(place.warehouse, place.topic) == []
    assert len(place.rows()) == 550


def test_offsets_that_compaction_removed_are_explained(tmp_path: Path, kafka_jar_paths: list[Path]):
    broker = LocalBroker.in_directory(tmp_path / "broker", kafka_jar_paths)
    quickly = (("log.cleaner.backoff.ms", "100"),)
    settings = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
    with LocalBroker(dataclasses.replace(broker.config, properties=quickly), kafka_jar_paths) as running:
        running.create_topic("compacted", 1, settings)
        place = Place(running, "compacted", tmp_path, compacted=True)
        producer = Producer(place.client)
        for number in range(12):
            producer.produce("compacted", b"%d" % number, b"key-%d" % (number % 2), 0)
            producer.flush()
        wait_until(lambda: len(place.read()) < 8, 60, "the compaction of what is beyond the newest segment")
        place.take_all(place.archive())
        kept = {row["offset"] for row in place.rows()}
        gone = {n for _, first, last, _ in place.gaps() for n in range(first, last + 1)}
        assert gone
        assert {reason for *_, reason in place.gaps()} == {"compaction"}
        assert kept | gone == set(range(12))
        assert find_disagreements(place.warehouse, "compacted") == []


class Killed(BaseException):
    """The process ended here."""


STEPS = (
    (ArchiveTable, "write"),
    (BatchTable, "write_file"),
    (BatchJournal, "commit_outcome"),
    (BatchTable, "commit"),
)


def test_killed_between_any_two_steps_it_ends_as_one_that_was_not(
    make: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    place = make("cut")
    left = [0]

    def step() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    def burning(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def around(*arguments: Any) -> Any:
            step()
            done = real(*arguments)
            step()
            return done

        monkeypatch.setattr(owner, name, around)

    for owner, name in STEPS:
        burning(owner, name)
    killed = 0
    for kill_at in range(1, 18):
        fill(place, 30, first=30 * kill_at)
        left[0] = kill_at
        try:
            place.take_all(place.archive())
        except Killed:
            killed += 1
    # Of the steps of one turn: taking up the last batch, and the next one's files, decision and commits.
    assert killed >= 12
    left[0] = 0
    place.take_all(place.archive())
    monkeypatch.undo()
    place.check()
    batches = [row["batch_id"] for row in place.rows()]
    assert max(batches) + 1 <= len(place.told)


def test_of_two_writers_the_fenced_one_stops(make: Callable[..., Place]):
    place = make("fought")
    fill(place, 300)
    old, new = place.archive(epoch=1), place.archive(epoch=2)
    place.take_all(new, at_once=100)
    fill(place, 30, first=300)
    with pytest.raises(WriterFencedError):
        place.take_all(old)
    place.take_all(place.archive(epoch=3))
    place.check()


def test_a_topic_that_was_created_again_is_refused(make: Callable[..., Place]):
    place = make("remade")
    fill(place, 30)
    place.take_all(place.archive())
    admin = AdminClient(place.client)
    admin.delete_topics([place.topic])[place.topic].result(30)
    create_when_gone(place)
    fill(place, 300)
    with pytest.raises(ArchiveError, match="created again"):
        place.archive()


def create_when_gone(place: Place) -> None:
    def made() -> bool:
        try:
            place.broker.create_topic(place.topic, 3)
        except KafkaException:
            return False
        return True

    wait_until(made, 30, "the old topic to be gone")


def test_a_table_without_its_journal_is_refused(make: Callable[..., Place]):
    place = make("bare")
    fill(place, 30)
    place.take_all(place.archive())
    (place.folder / "stream").rename(place.folder / "elsewhere")
    with pytest.raises(ArchiveError, match="restore the journal"):
        place.archive()


def test_a_missing_topic_is_refused(broker: LocalBroker):
    with pytest.raises(ArchiveError, match="penstock topics apply"):
        fetch_topic_id({"bootstrap.servers": broker.bootstrap}, "nowhere")


def test_the_files_of_a_past_day_are_compacted(make: Callable[..., Place]):
    place = make("merged")
    for turn in range(12):
        fill(place, 30, first=turn * 30)
        place.take_all(place.archive(), clock=NOON)
    archive = place.archive()
    fill(place, 30, first=360)
    place.take_all(archive, clock=NOON + DAY_MS)
    place.check()
    table = DeltaTable(place.warehouse / records_path(place.topic))
    assert len(table.file_uris(file_pruning_predicate=[(DAY_COLUMN, "=", utc_day(NOON))])) == 1


def test_a_stream_archives_new_records_and_finishes_them_when_it_is_drained(make: Callable[..., Place]):
    place = make("streamed")
    config = ArchiveConfig(
        BrokerAccess(place.broker.bootstrap), place.folder / "stream", place.warehouse, batch_interval_ms=0
    )
    ticks = itertools.count(NOON, 1_000)
    right = WriteFence(archive_name(place.topic), 1, lambda: True)
    for turn in range(2):
        stream = ArchiveStream(place.topic, config, right, place.told.append, lambda: next(ticks))
        stream.start()
        fill(place, 600, first=turn * 600)
        wait_until(lambda: place.told and sum(place.told[-1].ends.values()) >= 300, 60, "a batch")
        stream.drain()
        assert stream.failure() is None
    stream = ArchiveStream(place.topic, config, right, place.told.append, lambda: next(ticks))
    stream.start()
    wait_until(lambda: sum(place.told[-1].ends.values()) == 1_200, 60, "the rest")
    stream.drain()
    place.check()
