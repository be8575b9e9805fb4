"""Chunks between sending and acknowledgement.

A delivery report for every record costs a third of the throughput. One report for the last record that a chunk
sends to a partition is enough: the broker appends in order, so the report acknowledges all records before it. If
the number of offsets since our last record equals the number of sent records, these offsets are their addresses. If
another writer uses the partition, there are more offsets. Then the offset range is read back, and the next chunks
request a report for every record.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from penstock.ingestion.errors import DeliveryError, LedgerError
from penstock.ingestion.ledger import DeliveryLedger, to_offset_runs
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.dead_letters import MAX_DEAD_LETTER_VALUE_BYTES, build_dead_letter_headers
from penstock.ingestion.producer.kafka_io import TargetPartitions, WaitCallback, ignore_wait
from penstock.ingestion.producer.readback import match_offsets, read_records

_SHARED_PARTITION_CHUNKS = 100


class InFlightChunks:
    """Sends chunks, and records completed chunks in the ledger in order."""

    def __init__(
        self,
        producer: Producer,
        open_reader: Callable[[], Consumer],
        ledger: DeliveryLedger,
        targets: TargetPartitions,
        last_offsets: list[int],
        on_wait: WaitCallback = ignore_wait,
    ) -> None:
        self._producer = producer
        self._open_reader = open_reader
        self._ledger = ledger
        self._targets = targets
        self._last_offsets = last_offsets
        self._on_wait = on_wait
        self._shared_chunks_left = [0] * len(targets)
        self._chunks: deque[Chunk] = deque()
        self._unresolved_reports: deque[tuple[Chunk, int, int, int]] = deque()
        self._failure: KafkaError | None = None
        self.record_count = 0
        self.byte_count = 0

    def send(self, chunk: Chunk, missing_by_target: Mapping[int, Sequence[int]] | None = None) -> None:
        """Pass a chunk to the client library. `missing_by_target` limits it to some indexes for each target."""
        self._chunks.append(chunk)
        self.record_count += len(chunk.target_ids)
        self.byte_count += chunk.size_bytes
        try:
            for target_id, indexes in (
                _group_by_target(chunk.target_ids) if missing_by_target is None else missing_by_target
            ).items():
                chunk.pending_targets += 1
                self._dispatch(chunk, target_id, indexes, tail_known=missing_by_target is None)
        except KafkaException as error:
            raise self._delivery_error(error.args[0]) from error

    def poll(self, timeout_s: float) -> int:
        """Wait for delivery reports, record completed chunks, and return their number of records."""
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            # The client library raises this error after a fatal failure; it sends nothing more.
            self.record_failure(error.args[0])
        while self._unresolved_reports:
            chunk, target_id, first_offset, last_offset = self._unresolved_reports[0]
            chunk.offset_runs[target_id] = to_offset_runs(
                self._read_back_offsets(chunk, target_id, first_offset, last_offset)
            )
            chunk.pending_targets -= 1
            self._unresolved_reports.popleft()
        acknowledged = self._acknowledge_complete()
        if self._failure is not None:
            raise self._delivery_error(self._failure)
        return acknowledged

    def record_failure(self, error: KafkaError) -> None:
        """Store the failure that ends this producer; `poll` raises it."""
        self._failure = error if self._failure is None else self._failure

    def _delivery_error(self, error: KafkaError) -> DeliveryError:
        acknowledged_until = self._ledger.state.acknowledged_until
        return DeliveryError(
            f"The broker refused a record: {error.str()} ({error.name()}). "
            f"All records before sequence {acknowledged_until} are delivered. Start again to resume there.",
            acknowledged_until,
        )

    def _acknowledge_complete(self) -> int:
        completed = []
        while self._chunks and self._chunks[0].pending_targets == 0:
            chunk = self._chunks.popleft()
            self.record_count -= len(chunk.target_ids)
            self.byte_count -= chunk.size_bytes
            completed.append((chunk.first_sequence, chunk.target_ids, chunk.offset_runs))
        if completed:
            self._ledger.record_acknowledgements(completed)
        return sum(len(target_ids) for _, target_ids, _ in completed)

    def _dispatch(self, chunk: Chunk, target_id: int, indexes: Sequence[int], *, tail_known: bool) -> None:
        """Send part of a chunk to a target. If its tail is unknown, request a report for every record."""
        if target_id == len(self._targets) - 1:
            self._send_dead_letters(chunk, target_id, indexes)
        elif not tail_known or self._shared_chunks_left[target_id]:
            self._shared_chunks_left[target_id] = max(0, self._shared_chunks_left[target_id] - 1)
            self._send_with_all_reports(chunk, target_id, indexes)
        else:
            self._send_with_last_report(chunk, target_id, indexes)

    def _send_with_last_report(self, chunk: Chunk, target_id: int, indexes: Sequence[int]) -> None:
        messages = self._build_messages(chunk, indexes)
        messages[-1]["callback"] = lambda error, message: self._on_last_report(
            chunk, target_id, len(indexes), error, message
        )
        self._enqueue(target_id, messages)

    def _send_with_all_reports(self, chunk: Chunk, target_id: int, indexes: Sequence[int]) -> None:
        messages = self._build_messages(chunk, indexes)
        report = self._make_report_callback(chunk, target_id, len(indexes))
        for message in messages:
            message["callback"] = report
        self._enqueue(target_id, messages)

    def _send_dead_letters(self, chunk: Chunk, target_id: int, indexes: Sequence[int]) -> None:
        topic, partition = self._targets[target_id]
        report = self._make_report_callback(chunk, target_id, len(indexes))
        for index in indexes:
            value, error = chunk.batch.values[index], chunk.batch.invalid[index]
            headers = build_dead_letter_headers(
                self._ledger.producer_name,
                chunk.first_sequence + index,
                self._targets[0][0],
                error,
                len(value),
            )
            self._producer.produce(
                topic,
                value[:MAX_DEAD_LETTER_VALUE_BYTES],
                None,
                partition,
                on_delivery=report,
                headers=headers,
            )

    def _build_messages(self, chunk: Chunk, indexes: Sequence[int]) -> list[dict[str, Any]]:
        values, keys = chunk.batch.values, chunk.keys
        return [{"value": values[index], "key": keys[index]} for index in indexes]

    def _enqueue(self, target_id: int, messages: list[dict[str, Any]]) -> None:
        topic, partition = self._targets[target_id]
        queued = self._producer.produce_batch(topic, messages, partition=partition)
        if queued < len(messages):
            raise KafkaException(next(message["_error"] for message in messages if "_error" in message))

    def _on_last_report(
        self, chunk: Chunk, target_id: int, expected_count: int, error: KafkaError | None, message: Message
    ) -> None:
        if error is not None:
            self.record_failure(error)
            return
        first_offset, last_offset = self._last_offsets[target_id] + 1, message.offset()
        assert last_offset is not None
        self._last_offsets[target_id] = last_offset
        if last_offset - first_offset + 1 == expected_count:
            chunk.offset_runs[target_id] = [(first_offset, expected_count)]
            chunk.pending_targets -= 1
        else:
            self._shared_chunks_left[target_id] = _SHARED_PARTITION_CHUNKS
            self._unresolved_reports.append((chunk, target_id, first_offset, last_offset))

    def _make_report_callback(
        self, chunk: Chunk, target_id: int, expected_count: int
    ) -> Callable[[KafkaError | None, Message], None]:
        offsets: list[int] = []

        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.record_failure(error)
                return
            offset = message.offset()
            assert offset is not None
            offsets.append(offset)
            if len(offsets) == expected_count:
                self._last_offsets[target_id] = offset
                chunk.offset_runs[target_id] = [
                    *chunk.offset_runs.get(target_id, ()),
                    *to_offset_runs(offsets),
                ]
                chunk.pending_targets -= 1

        return report

    def _read_back_offsets(
        self, chunk: Chunk, target_id: int, first_offset: int, last_offset: int
    ) -> list[int]:
        expected = chunk.expected_records(target_id)
        # Match backwards: the last record is known to be ours, and earlier records of other writers may look like
        # ours.
        tail = read_records(
            self._open_reader(), *self._targets[target_id], first_offset, last_offset, self._on_wait
        )
        offsets = match_offsets(expected[::-1], tail[::-1])[::-1]
        if len(offsets) < len(expected):
            topic, partition = self._targets[target_id]
            raise LedgerError(
                f"{topic} partition {partition} acknowledged {len(expected)} records up to offset {last_offset}, "
                f"but only {len(offsets)} of them were found from offset {first_offset} on. "
                "Check whether retention or compaction removed them."
            )
        return offsets


def _group_by_target(target_ids: Sequence[int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for index, target_id in enumerate(target_ids):
        groups.setdefault(target_id, []).append(index)
    return groups
