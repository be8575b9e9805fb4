"""Feeds: send the records of a source to a topic until it ends, is stopped, or reaches a limit."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from penstock.core.clock import Clock
from penstock.core.kafka_client import KafkaClientSettings
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import UserSourceError
from penstock.ingestion.ledger import DeliveryLedger
from penstock.ingestion.producer import (
    KEY_PARTITIONER,
    BackpressureStatus,
    InFlightWindow,
    LedgeredProducer,
    NewTopicPolicy,
    create_record_format,
)
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.recovery import ReplayRecords
from penstock.ingestion.refused_records import RefusedReason, RefusedRecordCounter
from penstock.ingestion.registry import SchemaRegistry
from penstock.ingestion.sources.source import RecordSource, make_replay, read_rest

_IDLE_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class FeedProgress:
    """The progress of a feed. `broker_error` is the last error of the client while it waits, else empty."""

    sent_records: int
    acknowledged_records: int
    dead_letters: int
    elapsed_ms: int
    broker_error: str = ""


@dataclass(frozen=True, slots=True)
class FeedSummary:
    """The result of a feed. `complete` means that nothing was in flight at its end.

    `refused` holds the reasons of the dead letters of this run.
    """

    producer: str
    first_sequence: int
    acknowledged_until: int
    dead_letters: int
    elapsed_ms: int
    complete: bool
    refused: tuple[RefusedReason, ...] = ()

    @property
    def acknowledged_records(self) -> int:
        """The records of this run that are delivered and in the ledger."""
        return self.acknowledged_until - self.first_sequence


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """Limits of a run: stop after `count` records of this run, or at sequence `until` of the producer.

    At the limit, or when stopped, the feed waits up to `finish_ms` for records in flight.
    """

    count: int | None = None
    until: int | None = None
    finish_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Feed:
    """Sends one source to one topic under a producer name, with the ledger in `ledger_directory`.

    The ledger retains addresses for `retention_ms`, or forever if it is None.
    """

    source: RecordSource
    contract: Contract
    bootstrap: str
    ledger_directory: Path
    clock: Clock
    registry: SchemaRegistry | None = None
    partitioner_name: str = KEY_PARTITIONER
    in_flight_window: InFlightWindow | None = None
    client_settings: KafkaClientSettings = field(default_factory=dict)
    retention_ms: int | None = None
    on_new_topic: NewTopicPolicy = "start_over"

    def run(
        self,
        stop: Event,
        on_progress: Callable[[FeedProgress], None] = lambda _: None,
        limits: FeedLimits | None = None,
    ) -> FeedSummary:
        """Send until the source ends, a limit is reached or `stop` is set; then flush what is in flight.

        Resumes where an earlier run of the same producer stopped, also after a kill.
        """
        ledger = DeliveryLedger(self.ledger_directory, self.clock, retention_ms=self.retention_ms)
        try:
            return _FeedRun(self, ledger, stop, on_progress, limits or FeedLimits()).run()
        finally:
            ledger.close(clean=False)


class _FeedStoppedError(Exception):
    """The feed was stopped while the producer waited for room. Unsent records remain in the source."""


class _FeedRun:
    def __init__(
        self,
        feed: Feed,
        ledger: DeliveryLedger,
        stop: Event,
        on_progress: Callable[[FeedProgress], None],
        limits: FeedLimits,
    ) -> None:
        self._feed = feed
        self._ledger = ledger
        self._stop = stop
        self._on_progress = on_progress
        self._limits = limits
        self._checker = create_record_format(feed.contract, feed.registry).checker
        self._dead_letters = 0
        self._refused = RefusedRecordCounter(feed.contract, feed.source)
        self._first_sequence = 0
        self._finish_deadline_ms: int | None = None
        self._started_ms = feed.clock()
        self._producer = LedgeredProducer(
            feed.bootstrap,
            feed.contract.topic,
            ledger,
            source=feed.source.description,
            dead_letter_topic=feed.contract.dead_letter_topic,
            partitioner_name=feed.partitioner_name,
            in_flight_window=feed.in_flight_window,
            on_wait=self._on_backpressure,
            client_settings=feed.client_settings,
            on_new_topic=feed.on_new_topic,
        )

    def run(self) -> FeedSummary:
        """Run the feed."""
        try:
            complete = self._resume() and self._send_and_flush()
        finally:
            self._producer.close()
        return FeedSummary(
            self._ledger.producer_name,
            self._first_sequence,
            self._producer.acknowledged_until,
            self._dead_letters,
            self._elapsed_ms(),
            complete,
            self._refused.summarize(),
        )

    def _resume(self) -> bool:
        try:
            self._first_sequence = self._producer.resume(self._make_replay())
        except _FeedStoppedError:
            self._first_sequence = self._producer.acknowledged_until
            return False
        return True

    def _send_and_flush(self) -> bool:
        with closing(self._read_batches()) as batches:
            try:
                self._send_all(batches)
            except UserSourceError as error:
                self._flush_in_flight()
                raise error.with_progress(self._describe_progress()) from error.__cause__
            return self._flush_in_flight()

    def _send_all(self, batches: Iterator[SourceBatch]) -> None:
        try:
            for batch in batches:
                if not len(batch):
                    self._producer.poll(_IDLE_PAUSE_S)
                else:
                    self._send_batch(batch)
                self._report_progress()
                if self._stop.is_set() or self._producer.next_sequence >= self._end_sequence():
                    return
        except _FeedStoppedError:
            return

    def _read_batches(self) -> Generator[SourceBatch]:
        last_intent = self._ledger.state.last_intent
        if self._producer.next_sequence >= self._end_sequence():
            return
        if last_intent is None or last_intent.position is None:
            yield from self._feed.source.read(None)
        elif last_intent.position_after is not None:
            yield from read_rest(self._feed.source, last_intent.position_after, 0)
        else:
            yield from read_rest(
                self._feed.source, last_intent.position, last_intent.skip_records + last_intent.record_count
            )

    def _make_replay(self) -> ReplayRecords | None:
        replay_records = make_replay(self._feed.source)
        if replay_records is None:
            return None
        return lambda position, skip, count: [
            self._checker.check(batch) for batch in replay_records(position, skip, count)
        ]

    def _send_batch(self, batch: SourceBatch) -> None:
        remaining = self._end_sequence() - self._producer.next_sequence
        checked_batch = self._checker.check(
            batch if len(batch) <= remaining else batch.slice_records(0, int(remaining))
        )
        self._dead_letters += len(checked_batch.invalid)
        self._refused.add_batch(checked_batch)
        self._producer.send(checked_batch)

    def _end_sequence(self) -> float:
        end_candidates = [float("inf") if self._limits.until is None else self._limits.until]
        if self._limits.count is not None:
            end_candidates.append(self._first_sequence + self._limits.count)
        return min(end_candidates)

    def _flush_in_flight(self) -> bool:
        self._finish_deadline_ms = self._feed.clock() + self._limits.finish_ms
        try:
            complete = self._producer.flush(self._is_wait_over)
        except _FeedStoppedError:
            complete = False
        self._report_progress()
        return complete

    def _describe_progress(self) -> str:
        """Say what became of the records before an error of the source."""
        records = self._producer.acknowledged_until - self._first_sequence
        refused = f", {self._dead_letters:,} of them refused" if self._dead_letters else ""
        sent = f"{records:,} {'record was' if records == 1 else 'records were'} acknowledged before{refused}"
        if not self._feed.source.is_replayable:
            return f"{sent}. Fix the source, and run it again"
        return f"{sent}. Fix the source: the next run of producer {self._ledger.producer_name} resumes there"

    def _on_backpressure(self, status: BackpressureStatus) -> None:
        self._report_progress(status.broker_error or "the broker does not accept more records at the moment")
        if self._is_wait_over():
            raise _FeedStoppedError

    def _is_wait_over(self) -> bool:
        if self._finish_deadline_ms is None:
            return self._stop.is_set()
        return self._feed.clock() > self._finish_deadline_ms

    def _elapsed_ms(self) -> int:
        return self._feed.clock() - self._started_ms

    def _report_progress(self, broker_error: str = "") -> None:
        acknowledged_records = self._producer.acknowledged_until - self._first_sequence
        self._feed.source.on_acknowledged(acknowledged_records)
        sent_records = self._producer.next_sequence - self._first_sequence
        self._on_progress(
            FeedProgress(
                sent_records, acknowledged_records, self._dead_letters, self._elapsed_ms(), broker_error
            )
        )
