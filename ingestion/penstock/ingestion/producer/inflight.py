"""Chunks between their sending and their acknowledgement.

Asking the client library for a report on every record costs a third of the throughput. One report suffices for
the last record that a chunk sends to a partition: the broker appends them in order, so it is acknowledged after
all before it, and if the offsets since our last record there are exactly as many as the chunk sent, they are
its addresses. When somebody else writes to the partition they are more: then the stretch is read back, and for
the next chunks every record is reported.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from penstock.ingestion.errors import DeliveryError, LedgerError
from penstock.ingestion.ledger import Ledger, runs_of
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.client import Targets, Told, silently
from penstock.ingestion.producer.dead_letters import KEPT_BYTES, headers_of
from penstock.ingestion.producer.readback import match, read_range

_SHARED_FOR = 100


class InFlight:
    """Sends chunks and, in order, writes completed ones to the ledger."""

    def __init__(
        self,
        producer: Producer,
        reader: Callable[[], Consumer],
        ledger: Ledger,
        targets: Targets,
        ends: list[int],
        waiting: Told = silently,
    ) -> None:
        self._producer = producer
        self._reader = reader
        self._ledger = ledger
        self._targets = targets
        self._ends = ends
        self._waiting = waiting
        self._shared = [0] * len(targets)
        self._chunks: deque[Chunk] = deque()
        self._doubts: deque[tuple[Chunk, int, int, int]] = deque()
        self._failure: KafkaError | None = None
        self.records = 0
        self.bytes = 0

    def send(self, chunk: Chunk, missing: Mapping[int, Sequence[int]] | None = None) -> None:
        """Hand a chunk to the client library; of each target only the places in `missing`, where that is given."""
        self._chunks.append(chunk)
        self.records += len(chunk.lanes)
        self.bytes += chunk.size
        try:
            for lane, places in (_grouped(chunk.lanes) if missing is None else missing).items():
                chunk.waiting += 1
                self._hand_over(chunk, lane, places, known=missing is None)
        except KafkaException as error:
            raise self._stopped(error.args[0]) from error

    def serve(self, seconds: float) -> int:
        """Wait up to so long for reports, settle what they complete, and return how many records that were."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:
            # How the client library says that it has met an error after which it sends nothing more.
            self.fail(error.args[0])
        while self._doubts:
            chunk, lane, first, last = self._doubts[0]
            chunk.runs[lane] = runs_of(self._read_back(chunk, lane, first, last))
            chunk.waiting -= 1
            self._doubts.popleft()
        settled = self._settled()
        if self._failure is not None:
            raise self._stopped(self._failure)
        return settled

    def fail(self, error: KafkaError) -> None:
        """Remember what ends this producer; `serve` raises it."""
        self._failure = error if self._failure is None else self._failure

    def _stopped(self, error: KafkaError) -> DeliveryError:
        reached = self._ledger.state.reached
        return DeliveryError(
            f"the broker refused a record: {error.str()} ({error.name()}); every record before sequence {reached} "
            "is delivered, and starting again resumes there",
            reached,
        )

    def _settled(self) -> int:
        done = []
        while self._chunks and self._chunks[0].waiting == 0:
            chunk = self._chunks.popleft()
            self.records -= len(chunk.lanes)
            self.bytes -= chunk.size
            done.append((chunk.first, chunk.lanes, chunk.runs))
        if done:
            self._ledger.acknowledge(done)
        return sum(len(lanes) for _, lanes, _ in done)

    def _hand_over(self, chunk: Chunk, lane: int, places: Sequence[int], *, known: bool) -> None:
        """Send places of a chunk to a target; where it is not `known` what lies there, each record is reported."""
        if lane == len(self._targets) - 1:
            self._send_dead(chunk, lane, places)
        elif not known or self._shared[lane]:
            self._shared[lane] = max(0, self._shared[lane] - 1)
            self._send_reported(chunk, lane, places)
        else:
            self._send_quickly(chunk, lane, places)

    def _send_quickly(self, chunk: Chunk, lane: int, places: Sequence[int]) -> None:
        messages = self._messages(chunk, places)
        messages[-1]["callback"] = lambda error, message: self._last(chunk, lane, len(places), error, message)
        self._enqueue(lane, messages)

    def _send_reported(self, chunk: Chunk, lane: int, places: Sequence[int]) -> None:
        messages = self._messages(chunk, places)
        report = self._each(chunk, lane, len(places))
        for message in messages:
            message["callback"] = report
        self._enqueue(lane, messages)

    def _send_dead(self, chunk: Chunk, lane: int, places: Sequence[int]) -> None:
        topic, partition = self._targets[lane]
        report = self._each(chunk, lane, len(places))
        for place in places:
            value, error = chunk.batch.values[place], chunk.batch.broken[place]
            headers = headers_of(
                self._ledger.name, chunk.first + place, self._targets[0][0], error, len(value)
            )
            self._producer.produce(
                topic, value[:KEPT_BYTES], None, partition, on_delivery=report, headers=headers
            )

    def _messages(self, chunk: Chunk, places: Sequence[int]) -> list[dict[str, Any]]:
        values, keys = chunk.batch.values, chunk.keys
        return [{"value": values[place], "key": keys[place]} for place in places]

    def _enqueue(self, lane: int, messages: list[dict[str, Any]]) -> None:
        topic, partition = self._targets[lane]
        queued = self._producer.produce_batch(topic, messages, partition=partition)
        if queued < len(messages):
            raise KafkaException(next(message["_error"] for message in messages if "_error" in message))

    def _last(self, chunk: Chunk, lane: int, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.fail(error)
            return
        first, last = self._ends[lane] + 1, message.offset()
        assert last is not None
        self._ends[lane] = last
        if last - first + 1 == number:
            chunk.runs[lane] = [(first, number)]
            chunk.waiting -= 1
        else:
            self._shared[lane] = _SHARED_FOR
            self._doubts.append((chunk, lane, first, last))

    def _each(self, chunk: Chunk, lane: int, number: int) -> Callable[[KafkaError | None, Message], None]:
        offsets: list[int] = []

        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.fail(error)
                return
            offset = message.offset()
            assert offset is not None
            offsets.append(offset)
            if len(offsets) == number:
                self._ends[lane] = offset
                chunk.runs[lane] = [*chunk.runs.get(lane, ()), *runs_of(offsets)]
                chunk.waiting -= 1

        return report

    def _read_back(self, chunk: Chunk, lane: int, first: int, last: int) -> list[int]:
        expected = chunk.expected(lane)
        # Backwards, for the last record is known to be ours, and what lies before ours may look like it.
        tail = read_range(self._reader(), *self._targets[lane], first, last, self._waiting)
        offsets = match(expected[::-1], tail[::-1])[::-1]
        if len(offsets) < len(expected):
            topic, partition = self._targets[lane]
            raise LedgerError(
                f"{topic} partition {partition} acknowledged {len(expected)} records up to offset {last}, and "
                f"only {len(offsets)} of them are found from {first} on; retention or compaction removed them?"
            )
        return offsets


def _grouped(lanes: Sequence[int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for place, lane in enumerate(lanes):
        groups.setdefault(lane, []).append(place)
    return groups
