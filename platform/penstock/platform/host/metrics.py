"""What a host shows of itself to Prometheus."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from penstock.pipelines.host.control import BatchRecord, StreamHealth

FATES = ("folded", "late", "quarantined", "duplicate", "filtered")
WHOLE = "whole"
"""The part of a batch that is all of it."""

STATES = ("running", "paused", "drained", "stopped", "failed", "parked")
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class HostMetrics:
    """Counts of one host, by stream. They begin from nothing with the process, as counters may."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._batches = Counter(
            "penstock_batches", "Batches committed", ("stream", "kind"), registry=registry
        )
        self._read = Counter("penstock_records_read", "Records read", ("stream",), registry=registry)
        self._records = Counter(
            "penstock_records", "Records by what became of them", ("stream", "fate"), registry=registry
        )
        self._panes = Counter(
            "penstock_panes", "Pane rows written, by timing", ("stream", "timing"), registry=registry
        )
        self._seconds = Histogram(
            "penstock_batch_seconds",
            "How long the parts of a batch took",
            ("stream", "part"),
            registry=registry,
            buckets=SECONDS,
        )
        self._lag = Gauge(
            "penstock_lag_records",
            "Records in the topic beyond the newest batch",
            ("stream",),
            registry=registry,
        )
        self._watermark = Gauge(
            "penstock_watermark_seconds", "The watermark, seconds of UTC", ("stream",), registry=registry
        )
        self._last = Gauge(
            "penstock_last_batch_seconds",
            "Clock of the newest batch, UTC",
            ("stream",),
            registry=registry,
        )
        self._state_rows = Gauge(
            "penstock_state_rows", "Rows of state after the newest batch", ("stream",), registry=registry
        )
        self._running = Gauge(
            "penstock_stream_running", "Whether the stream runs in this host", ("stream",), registry=registry
        )
        self._in_state = Gauge(
            "penstock_stream_state",
            "1 for the state that the stream is in, by what its host last said",
            ("stream", "state"),
            registry=registry,
        )
        self._failures = Counter(
            "penstock_stream_failures", "How often the stream failed", ("stream",), registry=registry
        )

    def batch(self, record: BatchRecord, *, here: bool = True) -> None:
        """Count a committed batch; how the stream stands now is shown only where it is here."""
        stream = record.stream
        self._batches.labels(stream, record.kind).inc()
        self._read.labels(stream).inc(sum(account.read for account in record.accounts))
        for fate in FATES:
            self._records.labels(stream, fate).inc(sum(getattr(each, fate) for each in record.accounts))
        _add(self._panes, stream, record.panes)
        for part, milliseconds in record.durations_ms.items():
            self._seconds.labels(stream, part).observe(milliseconds / 1000)
        self._seconds.labels(stream, WHOLE).observe(sum(record.durations_ms.values()) / 1000)
        if here:
            self.stands(record)

    def lag(self, stream: str, records: int) -> None:
        """Show how many records wait for a stream."""
        self._lag.labels(stream).set(records)

    def stands(self, record: BatchRecord) -> None:
        """Show how a stream stood after its newest batch."""
        stream = record.stream
        self._lag.labels(stream).set(record.lag_records)
        self._state_rows.labels(stream).set(record.state_rows)
        self._last.labels(stream).set(record.clock_ms / 1000)
        if record.watermark_ms is not None:
            self._watermark.labels(stream).set(record.watermark_ms / 1000)

    def health(self, told: StreamHealth) -> None:
        """Note how a stream is doing."""
        self._running.labels(told.stream).set(told.state == "running")
        for state in STATES:
            self._in_state.labels(told.stream, state).set(told.state == state)
        self._failures.labels(told.stream).inc(told.state in ("failed", "parked"))

    def forget(self, stream: str) -> None:
        """Show nothing of how a stream stands: another host does. What was counted here stays."""
        for gauge in (self._lag, self._watermark, self._last, self._state_rows, self._running):
            gauge.remove(stream)
        for state in STATES:
            self._in_state.remove(stream, state)


def _add(counter: Counter, stream: str, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        counter.labels(stream, name).inc(count)
