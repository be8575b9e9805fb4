"""The control store as a host sees it, with everything that passes counted on the way, and told to Kafka."""

import threading
from collections.abc import Callable, Mapping

from penstock.pipelines.host.control import (
    BatchRecord,
    Control,
    DesiredState,
    HostReport,
    Lease,
    StreamHealth,
)
from penstock.platform.alerts import Alert, Raise, news
from penstock.platform.host.metrics import HostMetrics


class ObservedControl:
    """Hands every call on to the store, and counts what it told. Safe to use from several threads.

    `committed` is told of each batch too, once the store has it; `alert` hears of streams in trouble.
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
        self._lock = threading.Lock()

    @property
    def streams(self) -> Mapping[str, StreamHealth]:
        """How each stream of this host is doing, as last told."""
        with self._lock:
            return dict(self._health)

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
        """Write it down, then count it and tell of it."""
        self._store.record_batch(record)
        self._metrics.batch(record)
        self._committed(record)

    def last_batch(self, stream: str) -> BatchRecord | None:
        """See Control."""
        return self._store.last_batch(stream)

    def report_health(self, health: StreamHealth) -> None:
        """Write it down, and show it."""
        with self._lock:
            before = self._health.get(health.stream)
            self._health[health.stream] = health
        self._metrics.health(health)
        told = Alert(health.stream, health.state, health.reason, health.at_ms)
        if worth := news(before.state if before else None, told):
            self._alert(worth)
        self._store.report_health(health)

    def report_host(self, report: HostReport) -> None:
        """See Control."""
        self._store.report_host(report)
