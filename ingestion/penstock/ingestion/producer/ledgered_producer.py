"""The producer: sends batches, and records the address of each record in its ledger."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException

from penstock.core.kafka_client import PLAINTEXT_CLIENT, KafkaClientSettings, describe_kafka_error
from penstock.core.kafka_topics import TopicIds
from penstock.ingestion.errors import DeliveryError, LedgerError, SourceError
from penstock.ingestion.ledger import DeliveryLedger
from penstock.ingestion.producer.batch import RecordKeys, SourceBatch, split_batch
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.in_flight import InFlightChunks
from penstock.ingestion.producer.kafka_io import (
    create_producer,
    create_reader,
    list_targets,
    read_offset_ranges,
    read_topic_ids,
    require_topic,
)
from penstock.ingestion.producer.partitioner import KEY_PARTITIONER, load_partitioner
from penstock.ingestion.producer.recovery import (
    ReplayRecords,
    find_arrived_offsets,
    mark_arrived,
    read_tails,
    rebuild_chunks,
)

log = logging.getLogger(__name__)

NewTopicPolicy: TypeAlias = Literal["start_over", "refuse"]
"""What to do when the topic is another one than the ledger's: start over with a new ledger, or refuse."""


@dataclass(frozen=True, slots=True)
class InFlightWindow:
    """The limit of records in flight, and the size of chunks; `send` blocks at the limit."""

    max_records: int = 100_000
    max_bytes: int = 67_108_864
    max_chunk_records: int = 10_000
    max_chunk_bytes: int = 8_388_608


@dataclass(frozen=True, slots=True)
class BackpressureStatus:
    """Passed to `on_wait` while the broker is slow: the records in flight, and the last error of the client."""

    in_flight_records: int
    acknowledged_until: int
    broker_error: str


class LedgeredProducer:
    """Delivers batches to one topic, each record exactly once, and writes the ledger of their addresses.

    Call `resume` first. `send` blocks while the window is full. A record is safe once `acknowledged_until` is
    beyond its sequence. After a kill, `resume` of the next producer with the same ledger finds out which records
    arrived and sends the others. Nothing is lost or sent twice if the source can replay.

    Not guaranteed: to distinguish our record from a record of another writer with the same key and value in the
    same partition, if it was written while ours was in flight at a kill.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        ledger: DeliveryLedger,
        *,
        source: str = "",
        dead_letter_topic: str | None = None,
        partitioner_name: str = KEY_PARTITIONER,
        in_flight_window: InFlightWindow | None = None,
        on_wait: Callable[[BackpressureStatus], None] = lambda _status: None,
        client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
        on_new_topic: NewTopicPolicy = "start_over",
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._dead_letter_topic = dead_letter_topic or f"{topic}.dead-letters"
        self._ledger = ledger
        self._source = source
        self._partitioner_name = partitioner_name
        self._partitioner = load_partitioner(partitioner_name)
        self._window = in_flight_window or InFlightWindow()
        self._on_wait = on_wait
        self._client_settings = client_settings
        self._on_new_topic = on_new_topic
        self._broker_error = ""
        self._reader: Consumer | None = None
        self._in_flight: InFlightChunks | None = None
        self._producer = create_producer(
            bootstrap, self._on_client_error, {**_client_limits(self._window), **client_settings}
        )
        self.next_sequence = ledger.state.acknowledged_until

    @property
    def acknowledged_until(self) -> int:
        """The first unsettled sequence: all records below it are delivered and in the ledger."""
        return self._ledger.state.acknowledged_until

    def resume(self, replay: ReplayRecords | None) -> int:
        """Settle the records that an earlier producer left in doubt, start a session, and return the next sequence.

        A topic that was created again, or that is in another cluster, gets a ledger of its own, from the start of
        the source, or is refused: see `on_new_topic`.

        `on_wait` is called while the broker is unavailable, and can end the wait by raising; the next `resume`
        starts over. Without `replay` the source cannot replay, and records in doubt are recorded as abandoned.
        """
        try:
            topic_ids = self._fetch_topic_ids()
            self._select_ledger(topic_ids.by_topic[self._topic])
            return self._recover_and_start_session(replay, topic_ids)
        except KafkaException as error:
            raise DeliveryError(
                f"Cannot read {self._topic} at {self._bootstrap} to find out which records arrived: "
                f"{describe_kafka_error(error)}. Nothing was sent. Start again when the broker is up.",
                self.acknowledged_until,
            ) from error

    def _fetch_topic_ids(self) -> TopicIds:
        topics = (self._topic, self._dead_letter_topic)
        for topic in topics:
            require_topic(self._bootstrap, self._open_reader(), topic, self._notify_backpressure)
        return read_topic_ids(self._bootstrap, self._client_settings, topics, self._notify_backpressure)

    def _select_ledger(self, topic_id: str) -> None:
        """Use the ledger of this topic, and refuse one of another source."""
        ledger = self._ledger
        known_id = ledger.state.topic_ids.get(self._topic, topic_id)
        if known_id != topic_id and self._on_new_topic == "refuse":
            raise LedgerError(
                f"The ledger {ledger.directory} was written for another topic {self._topic} (id {known_id}, now "
                f"{topic_id}): it was created again, or it is in another cluster. Nothing was sent."
            )
        if ledger.select_topic(self._topic, topic_id):
            log.warning(
                "Using the ledger of another topic of this name (producer=%s, topic=%s, former_id=%s, id=%s, "
                "acknowledged=%d)",
                ledger.producer_name,
                self._topic,
                known_id,
                topic_id,
                ledger.state.acknowledged_until,
            )
        if ledger.state.source not in ("", self._source):
            raise LedgerError(
                f"The ledger {ledger.directory} belongs to the source '{ledger.state.source}', but this source is "
                f"'{self._source}'. Use another producer name."
            )

    def _recover_and_start_session(self, replay: ReplayRecords | None, topic_ids: TopicIds) -> int:
        if self._ledger.state.pending_intents:
            self._recover_in_doubt(replay)
        reader = self._open_reader()
        targets = list_targets(
            self._bootstrap, reader, self._topic, self._dead_letter_topic, self._notify_backpressure
        )
        last_offsets = [
            end_offset - 1 for _, end_offset in read_offset_ranges(reader, targets, self._notify_backpressure)
        ]
        self._ledger.start_session(targets, last_offsets, self._source, self._partitioner_name, topic_ids)
        self._in_flight = InFlightChunks(
            self._producer, self._open_reader, self._ledger, targets, last_offsets, self._notify_backpressure
        )
        self._close_reader()
        self.next_sequence = self._ledger.state.acknowledged_until
        return self.next_sequence

    def send(self, batch: SourceBatch) -> None:
        """Send a batch of validated records; blocks while the window is full."""
        in_flight = self._require_in_flight()
        for part in split_batch(batch, self._window.max_chunk_records, self._window.max_chunk_bytes):
            self._wait_for_room(in_flight, len(part))
            target_ids, keys = self._assign_targets(
                part, self.next_sequence, len(self._ledger.state.targets) - 1
            )
            self._ledger.record_intent(
                self.next_sequence, len(part), part.position, part.skip_records, part.position_after
            )
            in_flight.send(Chunk(self.next_sequence, part, target_ids, keys))
            self.next_sequence += len(part)
            in_flight.poll(0)

    def poll(self, timeout_s: float) -> int:
        """Wait up to `timeout_s` for acknowledgements and return their number."""
        acknowledged = self._require_in_flight().poll(timeout_s)
        self._close_reader()
        return acknowledged

    def flush(self, should_give_up: Callable[[], bool] = lambda: False) -> bool:
        """Wait until everything is settled or `should_give_up` returns True; return whether all is settled."""
        in_flight = self._require_in_flight()
        while in_flight.record_count and not should_give_up():
            if not self.poll(0.2) and in_flight.record_count:
                self._notify_backpressure()
        return not in_flight.record_count

    def close(self) -> None:
        """Close the producer. Records in flight stay in doubt; the next `resume` settles them."""
        self._close_reader()
        clean = self._in_flight is not None and not self._in_flight.record_count
        if not clean:
            self._producer.purge()
        self._ledger.close(clean=clean)

    def _recover_in_doubt(self, replay: ReplayRecords | None) -> None:
        state = self._ledger.state
        if state.partitioner_name not in ("", self._partitioner_name):
            raise LedgerError(
                f"The ledger {self._ledger.directory} has records in doubt with the partitioner "
                f"'{state.partitioner_name}', but this run uses '{self._partitioner_name}'. "
                "Run once with the old partitioner to settle them, then change it."
            )
        if replay is None or any(intent.position is None for intent in state.pending_intents):
            last_intent = state.pending_intents[-1]
            self._ledger.record_abandonment(
                state.acknowledged_until,
                last_intent.first_sequence + last_intent.record_count - state.acknowledged_until,
            )
            return
        tails = read_tails(self._open_reader(), state, str(self._ledger.directory), self._notify_backpressure)
        chunks = rebuild_chunks(state, replay, self._assign_targets)
        offsets = find_arrived_offsets(chunks, tails, self._ledger.producer_name)
        in_flight = InFlightChunks(
            self._producer,
            self._open_reader,
            self._ledger,
            state.targets,
            list(state.last_offsets),
            self._notify_backpressure,
        )
        self._in_flight = in_flight
        for chunk in chunks:
            in_flight.send(chunk, mark_arrived(chunk, offsets))
            in_flight.poll(0)
        self.flush()

    def _assign_targets(
        self, batch: SourceBatch, first_sequence: int, partitions: int
    ) -> tuple[list[int], RecordKeys]:
        if batch.keys is None:
            raise SourceError("The batch is not validated: it has no keys. Pass it to a RecordChecker first.")
        target_ids = self._partitioner(batch.keys, first_sequence, partitions)
        for index in batch.invalid:
            target_ids[index] = partitions
        return target_ids, batch.keys

    def _wait_for_room(self, in_flight: InFlightChunks, records: int) -> None:
        window = self._window
        while in_flight.record_count and (
            in_flight.record_count + records > window.max_records or in_flight.byte_count > window.max_bytes
        ):
            if not self.poll(0.2):
                self._notify_backpressure()

    def _notify_backpressure(self) -> None:
        in_flight_records = 0 if self._in_flight is None else self._in_flight.record_count
        self._on_wait(BackpressureStatus(in_flight_records, self.acknowledged_until, self._broker_error))

    def _require_in_flight(self) -> InFlightChunks:
        if self._in_flight is None:
            raise SourceError("The producer was used before `resume`. Call `resume` first.")
        return self._in_flight

    def _on_client_error(self, error: KafkaError) -> None:
        self._broker_error = error.str()
        if error.fatal() and self._in_flight is not None:
            self._in_flight.record_failure(error)

    def _open_reader(self) -> Consumer:
        if self._reader is None:
            self._reader = create_reader(self._bootstrap, self._client_settings)
        return self._reader

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _client_limits(window: InFlightWindow) -> dict[str, str | int | bool]:
    return {
        "queue.buffering.max.messages": window.max_records * 2,
        "queue.buffering.max.kbytes": window.max_bytes // 256,
        "message.max.bytes": 34_000_000,
    }
