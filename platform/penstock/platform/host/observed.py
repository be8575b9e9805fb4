"""The control store as a host sees it, with everything that passes counted on the way, and told to Kafka."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.pipelines.host.control import (
    BatchRecord,
    Control,
    DesiredState,
    HostReport,
    Lease,
    StreamHealth,
    Waiting,
)
from penstock.platform.alerts import Raise, Troubles
from penstock.platform.host.metrics import HostMetrics

READING = ("running", "failed")
"""What a stream is that is to read: of others records may wait as long as they are at rest."""


class ObservedControl:
    """Hands every call on to the store, and counts what it told. Safe to use from several threads.

    `committed` is told of each batch too, once the store has it; `alert` hears of streams in trouble, and that it
    is over once a batch is committed: a stream that was begun again may fail at the same record.
    """

    def __init__(
        self,
        store: Control,
        metrics: HostMetrics,
        committed: Callable[[BatchRecord], None] = lambda _: None,
        alert: Raise = lambda _: None,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._committed = committed
        self._alert = alert
        self._health: dict[str, StreamHealth] = {}
        self._lost: set[str] = set()
        self._read: dict[str, dict[tuple[str, int], int]] = {}
        self._newest: dict[str, int] = {}
        self._waits: dict[str, Waiting] = {}
        self._troubles = Troubles()
        self._lock = threading.Lock()

    @property
    def streams(self) -> Mapping[str, StreamHealth]:
        """How each stream of this host is doing, as last told."""
        with self._lock:
            return dict(self._health)

    @property
    def at_work(self) -> Mapping[str, Mapping[tuple[str, int], int]]:
        """Up to where each stream has read that is to read on here, by topic and partition."""
        with self._lock:
            reading = [told.stream for told in self._health.values() if told.state in READING]
            return {stream: dict(self._read.get(stream, {})) for stream in reading}

    def show_lag(self, waits: Mapping[str, int], now_ms: int) -> None:
        """Show how many records wait for each stream; nothing where it is another host's by now.

        The store is told of streams for which some waited the last time, too, and no batch was committed since.
        """
        with self._lock:
            here = {stream: records for stream, records in waits.items() if stream in self._health}
            for stream, records in here.items():
                self._metrics.lag(stream, records)
            seen = {stream: self._waiting(stream, records, now_ms) for stream, records in here.items()}
            again = [told for stream, told in seen.items() if _same_batch(self._waits.get(stream), told)]
            self._waits = {stream: told for stream, told in seen.items() if told.records}
        self._store.report_waiting(again)

    def _waiting(self, stream: str, records: int, now_ms: int) -> Waiting:
        told = Waiting(stream, self._newest.get(stream, -1), records, now_ms, self._health[stream].epoch)
        before = self._waits.get(stream)
        return replace(told, since_ms=before.since_ms) if before and _same_batch(before, told) else told

    def acquire(self, stream: str, holder: str, now_ms: int, ttl_ms: int) -> Lease | None:
        """See Control."""
        return self._store.acquire(stream, holder, now_ms, ttl_ms)

    def renew(self, lease: Lease, now_ms: int, ttl_ms: int) -> bool:
        """See Control."""
        return self._store.renew(lease, now_ms, ttl_ms)

    def release(self, lease: Lease) -> None:
        """See Control."""
        self._store.release(lease)

    def holder(self, stream: str) -> Lease | None:
        """See Control."""
        return self._store.holder(stream)

    def desired(self) -> Mapping[str, DesiredState]:
        """See Control."""
        return self._store.desired()

    def record_batch(self, record: BatchRecord) -> None:
        """Write it down, then count it and tell of it; of a stream that was lost nothing stands still here."""
        self._store.record_batch(record)
        with self._lock:
            told = self._health.get(record.stream)
            self._note(record)
            self._metrics.batch(record, here=record.stream not in self._lost)
            over = self._troubles.over(told) if told else None
        self._committed(record)
        if over:
            self._alert(over)

    def last_batch(self, stream: str) -> BatchRecord | None:
        """See Control. Who asks is about to begin the stream: it is shown as it stood then."""
        record = self._store.last_batch(stream)
        if record is not None:
            with self._lock:
                self._note(record)
                self._metrics.stands(record)
        return record

    def report_health(self, health: StreamHealth) -> None:
        """Show it, once, and write it down; said again after the store did not hear, it is only written."""
        with self._lock:
            known = self._health.get(health.stream) is health
            self._health[health.stream] = health
            self._lost.discard(health.stream)
            worth = None if known else self._troubles.news(health)
        if not known:
            self._metrics.health(health)
        if worth:
            self._alert(worth)
        self._store.report_health(health)

    def let_go(self, lost: StreamHealth) -> None:
        """Show nothing more of a stream that another host has, or may have; but a person should know."""
        with self._lock:
            self._health.pop(lost.stream, None)
            self._lost.add(lost.stream)
            worth = self._troubles.news(lost)
        self._metrics.forget(lost.stream)
        if worth:
            self._alert(worth)

    def _note(self, record: BatchRecord) -> None:
        ends = {(account.topic, account.partition): account.end for account in record.accounts}
        self._read.setdefault(record.stream, {}).update(ends)
        self._newest[record.stream] = record.batch_id

    def report_waiting(self, waiting: Sequence[Waiting]) -> None:
        """See Control."""
        self._store.report_waiting(waiting)

    def report_host(self, report: HostReport) -> None:
        """See Control."""
        self._store.report_host(report)


def _same_batch(before: Waiting | None, told: Waiting) -> bool:
    """Whether no batch was committed between two looks."""
    return before is not None and before.batch_id == told.batch_id
