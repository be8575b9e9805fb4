"""A Kafka topic that takes each batch once, as tables do: for whoever reads only what is committed.

A batch's rows are first written into a file that nobody reads, and the outcome names it. Later one transaction of
Kafka brings all of them, and commits with them, as the offset of a group of our own, which batch they were of. Done
again it finds that, and sends nothing. A host that was taken over is fenced by the name of its transactions.
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

from penstock.pipelines.errors import PublishError
from penstock.pipelines.fold.published import WATERMARK
from penstock.pipelines.plan.relaying import KIND
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import make_folder, read_rows, write_rows, write_text
from penstock.pipelines.tables.change import Change, DataFile

FOLDER = "published"
PATIENCE_S = 30.0
PAUSE_S = 0.1
LOOKING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""What a broker says while it is found out who keeps a group."""

TRANSACTION_MS = 60_000
BOUNDS = ("window_start", "window_end", "watermark", "replaced_by_start", "replaced_by_end")


PARTITION_UA = -1
"""Lets the client choose the partition, by the key."""


@dataclass(frozen=True)
class Message:
    """A record; without a key it goes to every partition."""

    key: bytes | None
    value: bytes


class PublishedTopic:
    """One topic. `application` is the stream that writes it; `clients` is what its clients are made with."""

    def __init__(
        self, topic: str, stage: Stage, folder: Place, application: str, clients: Mapping[str, str]
    ) -> None:
        self.topic = topic
        self.stage = stage.name
        self._key = stage.key
        self._folder = folder
        self._application = application
        self._clients = clients
        self._opened: Transactions | None = None

    def write(self, rows: pa.Table, batch_id: int, clock: int) -> Change:
        """Write a batch's rows into a file of its own, which nobody reads before an outcome names it."""
        if not rows.num_rows:
            return Change()
        path = self._folder / f"{self._application}-{batch_id:012d}-{uuid4().hex[:8]}.parquet"
        make_folder(path)
        file = DataFile(path.name, write_rows(rows, path), rows.num_rows, "", clock)
        panes = pc.sum(pc.not_equal(rows.column(KIND), WATERMARK)).as_py()
        return Change([file], (), panes)

    def discard(self, files: Iterable[DataFile]) -> None:
        """Remove files of an attempt that failed before anything named them."""
        for file in files:
            (self._folder / file.path).unlink(missing_ok=True)

    def commit(self, batch_id: int, change: Change, clock: int) -> bool:
        """Send a batch's rows, once; False where they were sent already. PublishError where it cannot be done."""
        del clock
        paths = [self._folder / file.path for file in change.adds]
        if batch_id <= self._noted():
            done = False
        else:
            try:
                done = self._sent(batch_id, paths)
            except KafkaException as problem:
                self._opened = None
                raise PublishError(self.topic, f"batch {batch_id} could not be sent ({problem})") from problem
            self._note(batch_id)
        for path in paths:
            path.unlink(missing_ok=True)
        return done

    def _sent(self, batch_id: int, paths: list[Place]) -> bool:
        transactions = self._transactions()
        if batch_id <= transactions.last_batch():
            return False
        rows = [row for path in paths for row in read_rows(path).to_pylist()]
        transactions.send(batch_id, messages(rows, self._key))
        return True

    def _transactions(self) -> "Transactions":
        if self._opened is None:
            self._opened = Transactions(self.topic, self._application, self._clients)
        return self._opened

    @property
    def _notes(self) -> Place:
        return self._folder / f"{self._application}.sent.json"

    def _noted(self) -> int:
        """The newest batch that is known to be sent: the broker forgets a group that was silent for days."""
        return int(json.loads(self._notes.read_text("utf-8"))["batch"]) if self._notes.exists() else -1

    def _note(self, batch_id: int) -> None:
        make_folder(self._notes)
        write_text(self._notes, json.dumps({"batch": batch_id}))


def topics_of(
    plan: Plan, warehouse: Place, clients: Mapping[str, str]
) -> Iterator[tuple[str, PublishedTopic]]:
    """The topics of a plan, by what an outcome calls them."""
    for stage in plan.stages:
        for end in stage.topics:
            path = f"{FOLDER}/{end.topic}"
            yield path, PublishedTopic(end.topic, stage, warehouse / path, plan.name, clients)


class Transactions:
    """The transactions of one stream into one topic. Opening it ends what another host of the stream left open."""

    def __init__(self, topic: str, application: str, clients: Mapping[str, str]) -> None:
        self._topic = topic
        name = f"penstock-{application}-{topic}"
        self._producer = Producer(
            {
                "partitioner": "murmur2_random",
                "transaction.timeout.ms": TRANSACTION_MS,
                "linger.ms": 5,
                **clients,
                "transactional.id": name,
                "enable.idempotence": True,
            }
        )
        self._consumer = Consumer({**clients, "group.id": name, "enable.auto.commit": False})
        known = self._producer.list_topics(topic, timeout=PATIENCE_S).topics[topic]
        if known.error is not None or not known.partitions:
            raise PublishError(topic, "it is not there")
        self._partitions = sorted(known.partitions)
        self._producer.init_transactions(PATIENCE_S)

    def last_batch(self) -> int:
        """The newest batch whose rows are committed; -1 before the first."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                (found,) = self._consumer.committed([TopicPartition(self._topic, 0)], timeout=PATIENCE_S)
            except KafkaException as problem:
                # A broker that has just taken over the group says so, and knows it a moment later.
                if problem.args[0].code() not in LOOKING or time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE_S)
            else:
                return found.offset - 1 if found.offset >= 0 else -1

    def send(self, batch_id: int, messages: Iterator[Message]) -> None:
        """Send records, all or none, and with them of which batch they are."""
        self._producer.begin_transaction()
        try:
            for message in messages:
                for partition in self._partitions if message.key is None else [PARTITION_UA]:
                    self._produce(message, partition)
            batch = [TopicPartition(self._topic, 0, batch_id + 1)]
            group = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(batch, group, PATIENCE_S)
            self._producer.commit_transaction(PATIENCE_S)
        except KafkaException as problem:
            if problem.args[0].txn_requires_abort():
                self._producer.abort_transaction(PATIENCE_S)
            raise

    def _produce(self, message: Message, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic, message.value, message.key, partition)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return


def messages(rows: Sequence[Mapping[str, Any]], key: Sequence[str]) -> Iterator[Message]:
    """Rows as records of JSON; what ends a batch has no key, and goes to every partition."""
    for row in rows:
        value = msgspec.json.encode({name: _plain(name, each) for name, each in row.items()})
        named = msgspec.json.encode([_plain(name, row[name]) for name in key])
        yield Message(None if row[KIND] == WATERMARK else named, value)


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it: the ends of time are null, and NaN and infinities texts that Spark reads as such."""
    if name in BOUNDS and value in (BEFORE_ALL, NEVER):
        return None
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return [_plain("", each) for each in value] if isinstance(value, list) else value
