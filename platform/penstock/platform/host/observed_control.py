"""The control store as a host sees it, with metrics, alerts and consumer groups updated on the way."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.engine.host.control import (
    BatchRecord,
    DesiredState,
    HostControl,
    HostReport,
    Lease,
    StreamBacklog,
    StreamHealth,
)
from penstock.engine.host.stream_state import StreamState
from penstock.platform.host.host_metrics import HostMetrics
from penstock.platform.services.alerts import AlertHandler, TroubleTracker

READING_STATES = (StreamState.RUNNING, StreamState.RETRYING)
"""The states of a stream that should read; in other states records may wait."""


class ObservedControl:
    """Forwards every call to the store, and updates metrics and alerts. Safe to use from several threads.

    `observe_batch` and then `on_commit` receive each batch after the store has it. `on_alert` receives trouble of
    streams, and recovery after the next committed batch: a restarted stream may fail again at the same record.
    """

    def __init__(
        self,
        store: HostControl,
        metrics: HostMetrics,
        on_commit: Callable[[BatchRecord], None] = lambda _: None,
        on_alert: AlertHandler = lambda _: None,
        observe_batch: Callable[[BatchRecord], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._on_commit = on_commit
        self._on_alert = on_alert
        self._observe_batch = observe_batch
        self._health: dict[str, StreamHealth] = {}
        self._lost_streams: set[str] = set()
        self._end_offsets: dict[str, dict[tuple[str, int], int]] = {}
        self._newest_batch_ids: dict[str, int] = {}
        self._last_waiting: dict[str, StreamBacklog] = {}
        self._troubles = TroubleTracker()
        self._lock = threading.Lock()

    @property
    def stream_health(self) -> Mapping[str, StreamHealth]:
        """The last reported health of each stream of this host."""
        with self._lock:
            return dict(self._health)

    @property
    def read_positions(self) -> Mapping[str, Mapping[tuple[str, int], int]]:
        """The end offsets of each stream that should read here, by topic and partition."""
        with self._lock:
            reading = [health.stream for health in self._health.values() if health.state in READING_STATES]
            return {stream: dict(self._end_offsets.get(stream, {})) for stream in reading}

    def show_lag(self, lag_by_stream: Mapping[str, int], now_ms: int) -> None:
        """Show the lag of each stream of this host.

        Report a backlog to the store if records already waited at the last call and no batch was committed since.
        """
        with self._lock:
            local_lag = {
                stream: records for stream, records in lag_by_stream.items() if stream in self._health
            }
            for stream, records in local_lag.items():
                self._metrics.show_lag(stream, records)
            waiting_by_stream = {
                stream: self._measure_waiting(stream, records, now_ms)
                for stream, records in local_lag.items()
            }
            still_waiting = [
                waiting
                for stream, waiting in waiting_by_stream.items()
                if _is_same_batch(self._last_waiting.get(stream), waiting)
            ]
            self._last_waiting = {
                stream: waiting for stream, waiting in waiting_by_stream.items() if waiting.records
            }
        self._store.report_backlogs(still_waiting)

    def _measure_waiting(self, stream: str, records: int, now_ms: int) -> StreamBacklog:
        current = StreamBacklog(
            stream, self._newest_batch_ids.get(stream, -1), records, now_ms, self._health[stream].epoch
        )
        previous = self._last_waiting.get(stream)
        return (
            replace(current, since_ms=previous.since_ms)
            if previous and _is_same_batch(previous, current)
            else current
        )

    def acquire_lease(self, stream: str, holder: str, now_ms: int, ttl_ms: int) -> Lease | None:
        """See HostControl."""
        return self._store.acquire_lease(stream, holder, now_ms, ttl_ms)

    def renew_lease(self, lease: Lease, now_ms: int, ttl_ms: int) -> bool:
        """See HostControl."""
        return self._store.renew_lease(lease, now_ms, ttl_ms)

    def release_lease(self, lease: Lease) -> None:
        """See HostControl."""
        self._store.release_lease(lease)

    def read_lease(self, stream: str) -> Lease | None:
        """See HostControl."""
        return self._store.read_lease(stream)

    def read_desired_states(self) -> Mapping[str, DesiredState]:
        """See HostControl."""
        return self._store.read_desired_states()

    def record_batch(self, record: BatchRecord) -> None:
        """Store the batch, then count and report it; gauges do not change for a stream that was lost."""
        self._store.record_batch(record)
        with self._lock:
            health = self._health.get(record.stream)
            self._note_batch(record)
            self._metrics.count_batch(record, is_local=record.stream not in self._lost_streams)
            recovery_alert = self._troubles.recovery_alert(health) if health else None
        self._observe_batch(record)
        self._on_commit(record)
        if recovery_alert:
            self._on_alert(recovery_alert)

    def read_last_batch(self, stream: str) -> BatchRecord | None:
        """See HostControl. The stream is about to start, so its progress is shown as of that batch."""
        record = self._store.read_last_batch(stream)
        if record is not None:
            with self._lock:
                self._note_batch(record)
                self._metrics.show_progress(record)
        return record

    def report_health(self, health: StreamHealth) -> None:
        """Show the health once and store it; a repeated call, after the store failed, only stores it."""
        with self._lock:
            is_repeated = self._health.get(health.stream) is health
            self._health[health.stream] = health
            self._lost_streams.discard(health.stream)
            alert = None if is_repeated else self._troubles.next_alert(health)
        if not is_repeated:
            self._metrics.record_health(health)
        if alert:
            self._on_alert(alert)
        self._store.report_health(health)

    def report_lost(self, lost: StreamHealth) -> None:
        """Stop showing a stream that another host runs or may run, and raise an alert."""
        with self._lock:
            self._health.pop(lost.stream, None)
            self._lost_streams.add(lost.stream)
            alert = self._troubles.next_alert(lost)
        self._metrics.remove_stream(lost.stream)
        if alert:
            self._on_alert(alert)

    def _note_batch(self, record: BatchRecord) -> None:
        end_offsets = {(account.topic, account.partition): account.end for account in record.accounts}
        self._end_offsets.setdefault(record.stream, {}).update(end_offsets)
        self._newest_batch_ids[record.stream] = record.batch_id

    def report_backlogs(self, waiting: Sequence[StreamBacklog]) -> None:
        """See HostControl."""
        self._store.report_backlogs(waiting)

    def report_host(self, report: HostReport) -> None:
        """See HostControl."""
        self._store.report_host(report)


def _is_same_batch(previous: StreamBacklog | None, current: StreamBacklog) -> bool:
    """Return whether no batch was committed between two measurements."""
    return previous is not None and previous.batch_id == current.batch_id
