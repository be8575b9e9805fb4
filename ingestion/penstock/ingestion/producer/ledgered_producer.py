"""The producer: sends batches, and can say afterwards where each record is."""

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException

from penstock.core.kafka_client import PLAINTEXT_CLIENT, KafkaClientSettings, describe_kafka_error
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
)
from penstock.ingestion.producer.partitioner import KEY_PARTITIONER, load_partitioner
from penstock.ingestion.producer.recovery import (
    ReplayRecords,
    find_arrived_offsets,
    mark_arrived,
    read_tails,
    rebuild_chunks,
)


@dataclass(frozen=True, slots=True)
class InFlightWindow:
    """How much may be in flight, and how it is cut; beyond it `send` waits."""

    max_records: int = 100_000
    max_bytes: int = 67_108_864
    max_chunk_records: int = 10_000
    max_chunk_bytes: int = 8_388_608


@dataclass(frozen=True, slots=True)
class BackpressureStatus:
    """Told to `on_wait` while the broker does not keep up: what is in flight, and what the client last heard."""

    in_flight_records: int
    acknowledged_until: int
    broker_error: str


class LedgeredProducer:
    """Delivers batches to one topic, each record once, and keeps the ledger of where they are.

    Begin with `resume`. `send` blocks while the window is full; records are safe once `reached` is beyond their
    sequence. After a kill, `resume` of the next producer with the same ledger finds out what arrived and sends
    the rest: nothing is lost and nothing is sent twice, as long as the source repeats itself.
    Not promised: to tell our record from another writer's that has the same key and value, in the same partition,
    written while ours was in flight at a kill.
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
        on_wait: Callable[[BackpressureStatus], None] = lambda _waiting: None,
        client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
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
        self._broker_error = ""
        self._reader: Consumer | None = None
        self._in_flight: InFlightChunks | None = None
        self._producer = create_producer(
            bootstrap, self._on_client_error, {**_client_limits(self._window), **client_settings}
        )
        self.next_sequence = ledger.state.acknowledged_until

    @property
    def acknowledged_until(self) -> int:
        """The first sequence that is not settled: all below it are delivered and in the ledger."""
        return self._ledger.state.acknowledged_until

    def resume(self, replay: ReplayRecords | None) -> int:
        """Settle what an earlier producer left in doubt, begin a session, and return the next sequence.

        While the broker is waited for `on_wait` is told, and ends that by raising; the next `resume` begins anew.
        Without `replay` the source cannot repeat itself: what is in doubt is noted as abandoned.
        """
        state = self._ledger.state
        if state.source not in ("", self._source):
            raise LedgerError(
                f"the ledger {self._ledger.directory} tells of records from {state.source}, and these come from "
                f"{self._source}: sequences would mean two things; use another producer name"
            )
        try:
            return self._recover_and_start_session(replay)
        except KafkaException as error:
            raise DeliveryError(
                f"{self._topic} at {self._bootstrap} cannot be read to learn what arrived: "
                f"{describe_kafka_error(error)}; is the broker up? Nothing was sent; start again when it is",
                self.acknowledged_until,
            ) from error

    def _recover_and_start_session(self, replay: ReplayRecords | None) -> int:
        if self._ledger.state.pending_intents:
            self._recover_in_doubt(replay)
        reader = self._open_reader()
        targets = list_targets(
            self._bootstrap, reader, self._topic, self._dead_letter_topic, self._notify_backpressure
        )
        last_offsets = [
            end_offset - 1 for _, end_offset in read_offset_ranges(reader, targets, self._notify_backpressure)
        ]
        self._ledger.start_session(targets, last_offsets, self._source, self._partitioner_name)
        self._in_flight = InFlightChunks(
            self._producer, self._open_reader, self._ledger, targets, last_offsets, self._notify_backpressure
        )
        self._close_reader()
        self.next_sequence = self._ledger.state.acknowledged_until
        return self.next_sequence

    def send(self, batch: SourceBatch) -> None:
        """Send a batch of checked records; blocks while the window is full."""
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
        """Wait up to so long for acknowledgements and return how many came."""
        acknowledged = self._require_in_flight().poll(timeout_s)
        self._close_reader()
        return acknowledged

    def flush(self, should_give_up: Callable[[], bool] = lambda: False) -> bool:
        """Wait until everything is settled, or until `give_up` says so; return whether it is."""
        in_flight = self._require_in_flight()
        while in_flight.record_count and not should_give_up():
            if not self.poll(0.2) and in_flight.record_count:
                self._notify_backpressure()
        return not in_flight.record_count

    def close(self) -> None:
        """End. What is still in flight stays in doubt, and the next `resume` settles it."""
        self._close_reader()
        clean = self._in_flight is not None and not self._in_flight.record_count
        if not clean:
            self._producer.purge()
        self._ledger.close(clean=clean)

    def _recover_in_doubt(self, replay: ReplayRecords | None) -> None:
        state = self._ledger.state
        if state.partitioner_name not in ("", self._partitioner_name):
            raise LedgerError(
                f"the ledger {self._ledger.directory} has records in doubt that were routed by "
                f"{state.partitioner_name}, and now the route is {self._partitioner_name}: "
                "run once with the old one to settle them, then change it"
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
            raise SourceError("a batch was sent unchecked: it has no keys; give it to a Checker first")
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
            raise SourceError("the producer was used before `resume`")
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
