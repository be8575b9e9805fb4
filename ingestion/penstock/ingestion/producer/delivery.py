"""The producer: sends batches, and can say afterwards where each record is."""

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException

from penstock.ingestion.clients import PLAIN, ClientSettings, said
from penstock.ingestion.errors import DeliveryError, LedgerError, SourceError
from penstock.ingestion.ledger import Ledger
from penstock.ingestion.producer.batch import Batch, Keys, parts
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.client import new_producer, new_reader, offset_ranges, targets_of
from penstock.ingestion.producer.inflight import InFlight
from penstock.ingestion.producer.recovery import Replay, arrived, fill_in, in_doubt, read_tails
from penstock.ingestion.producer.routing import BY_KEY, route_named


@dataclass(frozen=True, slots=True)
class Window:
    """How much may be in flight, and how it is cut; beyond it `send` waits."""

    records: int = 100_000
    bytes: int = 67_108_864
    chunk_records: int = 10_000
    chunk_bytes: int = 8_388_608


@dataclass(frozen=True, slots=True)
class Waiting:
    """Told to `on_wait` while the broker does not keep up: what is in flight, and what the client last heard."""

    in_flight: int
    reached: int
    heard: str


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
        ledger: Ledger,
        *,
        source: str = "",
        dead_letters: str | None = None,
        route: str = BY_KEY,
        window: Window | None = None,
        on_wait: Callable[[Waiting], None] = lambda _waiting: None,
        client: ClientSettings = PLAIN,
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._dead_letters = dead_letters or f"{topic}.dead-letters"
        self._ledger = ledger
        self._source = source
        self._route_name = route
        self._route = route_named(route)
        self._window = window or Window()
        self._on_wait = on_wait
        self._client = client
        self._heard = ""
        self._reader: Consumer | None = None
        self._flight: InFlight | None = None
        self._producer = new_producer(bootstrap, self._hear, {**_limits(self._window), **client})
        self.sent = ledger.state.reached

    @property
    def reached(self) -> int:
        """The first sequence that is not settled: all below it are delivered and in the ledger."""
        return self._ledger.state.reached

    def resume(self, replay: Replay | None) -> int:
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
            return self._resume(replay)
        except KafkaException as error:
            raise DeliveryError(
                f"{self._topic} at {self._bootstrap} cannot be read to learn what arrived: {said(error)}; is the "
                "broker up? Nothing was sent; start again when it is",
                self.reached,
            ) from error

    def _resume(self, replay: Replay | None) -> int:
        if self._ledger.state.intents:
            self._recover(replay)
        reader = self._reading()
        targets = targets_of(self._bootstrap, reader, self._topic, self._dead_letters, self._wait)
        ends = [high - 1 for _, high in offset_ranges(reader, targets, self._wait)]
        self._ledger.begin(targets, ends, self._source, self._route_name)
        self._flight = InFlight(self._producer, self._reading, self._ledger, targets, ends, self._wait)
        self._forget_reader()
        self.sent = self._ledger.state.reached
        return self.sent

    def send(self, batch: Batch) -> None:
        """Send a batch of checked records; blocks while the window is full."""
        flight = self._started()
        for part in parts(batch, self._window.chunk_records, self._window.chunk_bytes):
            self._wait_for_room(flight, len(part))
            lanes, keys = self._routed(part, self.sent, len(self._ledger.state.targets) - 1)
            self._ledger.intend(self.sent, len(part), part.position, part.skip, part.after)
            flight.send(Chunk(self.sent, part, lanes, keys))
            self.sent += len(part)
            flight.serve(0)

    def serve(self, seconds: float) -> int:
        """Wait up to so long for acknowledgements and return how many came."""
        settled = self._started().serve(seconds)
        self._forget_reader()
        return settled

    def flush(self, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Wait until everything is settled, or until `give_up` says so; return whether it is."""
        flight = self._started()
        while flight.records and not give_up():
            if not self.serve(0.2) and flight.records:
                self._wait()
        return not flight.records

    def close(self) -> None:
        """End. What is still in flight stays in doubt, and the next `resume` settles it."""
        self._forget_reader()
        in_order = self._flight is not None and not self._flight.records
        if not in_order:
            self._producer.purge()
        self._ledger.close(in_order=in_order)

    def _recover(self, replay: Replay | None) -> None:
        state = self._ledger.state
        if state.route not in ("", self._route_name):
            raise LedgerError(
                f"the ledger {self._ledger.directory} has records in doubt that were routed by {state.route}, and "
                f"now the route is {self._route_name}: run once with the old one to settle them, then change it"
            )
        if replay is None or any(intent.position is None for intent in state.intents):
            last = state.intents[-1]
            self._ledger.abandon(state.reached, last.first + last.count - state.reached)
            return
        tails = read_tails(self._reading(), state, str(self._ledger.directory), self._wait)
        chunks = in_doubt(state, replay, self._routed)
        offsets = arrived(chunks, tails, self._ledger.name)
        flight = InFlight(
            self._producer, self._reading, self._ledger, state.targets, list(state.ends), self._wait
        )
        self._flight = flight
        for chunk in chunks:
            flight.send(chunk, fill_in(chunk, offsets))
            flight.serve(0)
        self.flush()

    def _routed(self, batch: Batch, first: int, partitions: int) -> tuple[list[int], Keys]:
        if batch.keys is None:
            raise SourceError("a batch was sent unchecked: it has no keys; give it to a Checker first")
        lanes = self._route(batch.keys, first, partitions)
        for place in batch.broken:
            lanes[place] = partitions
        return lanes, batch.keys

    def _wait_for_room(self, flight: InFlight, records: int) -> None:
        window = self._window
        while flight.records and (flight.records + records > window.records or flight.bytes > window.bytes):
            if not self.serve(0.2):
                self._wait()

    def _wait(self) -> None:
        in_flight = 0 if self._flight is None else self._flight.records
        self._on_wait(Waiting(in_flight, self.reached, self._heard))

    def _started(self) -> InFlight:
        if self._flight is None:
            raise SourceError("the producer was used before `resume`")
        return self._flight

    def _hear(self, error: KafkaError) -> None:
        self._heard = error.str()
        if error.fatal() and self._flight is not None:
            self._flight.fail(error)

    def _reading(self) -> Consumer:
        if self._reader is None:
            self._reader = new_reader(self._bootstrap, self._client)
        return self._reader

    def _forget_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _limits(window: Window) -> dict[str, str | int | bool]:
    return {
        "queue.buffering.max.messages": window.records * 2,
        "queue.buffering.max.kbytes": window.bytes // 256,
        "message.max.bytes": 34_000_000,
    }
