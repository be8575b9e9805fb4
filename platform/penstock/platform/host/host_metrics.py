"""Prometheus metrics of a host."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.engine.host.control import BatchRecord, StreamHealth
from penstock.engine.host.stream_state import StreamState

WHOLE_BATCH_PART = "whole"
"""The `part` label of the duration of a whole batch."""

STREAM_STATES = tuple(state for state in StreamState if state != StreamState.FENCED)
"""The states that a host shows; a fenced stream is shown by the host that has it now."""
DURATION_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class HostMetrics:
    """Metrics of one host, by stream. Counters start at zero with the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._batches = Counter(
            "penstock_batches", "Batches committed", ("stream", "kind"), registry=registry
        )
        self._records_read = Counter("penstock_records_read", "Records read", ("stream",), registry=registry)
        self._records = Counter("penstock_records", "Records by fate", ("stream", "fate"), registry=registry)
        self._pane_rows = Counter(
            "penstock_panes", "Pane rows written, by timing", ("stream", "timing"), registry=registry
        )
        self._part_durations = Histogram(
            "penstock_batch_duration_seconds",
            "Duration of batches and of their parts",
            ("stream", "part"),
            registry=registry,
            buckets=DURATION_BUCKETS_S,
        )
        self._lag = Gauge(
            "penstock_consumer_lag_records",
            "Records in the topics after the end of the newest batch",
            ("stream",),
            registry=registry,
        )
        self._deprecated_lag = Gauge(
            "penstock_lag_records",
            "Deprecated: the name of penstock_consumer_lag_records in 0.1.0",
            ("stream",),
            registry=registry,
        )
        self._watermark = Gauge(
            "penstock_watermark_timestamp_seconds",
            "Watermark, in seconds since 1970 UTC",
            ("stream",),
            registry=registry,
        )
        self._last_batch_clock = Gauge(
            "penstock_last_batch_timestamp_seconds",
            "Commit time of the newest batch, in seconds since 1970 UTC",
            ("stream",),
            registry=registry,
        )
        self._state_rows = Gauge(
            "penstock_state_rows", "State rows after the newest batch", ("stream",), registry=registry
        )
        self._running = Gauge(
            "penstock_stream_running", "Whether the stream runs in this host", ("stream",), registry=registry
        )
        self._state = Gauge(
            "penstock_stream_state",
            "1 for the state that the host last reported for the stream",
            ("stream", "state"),
            registry=registry,
        )
        self._failures = Counter(
            "penstock_stream_failures", "Failures of the stream", ("stream",), registry=registry
        )

    def count_batch(self, record: BatchRecord, *, is_local: bool = True) -> None:
        """Count a committed batch; update the gauges only if the stream still runs in this host."""
        stream = record.stream
        self._batches.labels(stream, record.kind).inc()
        self._records_read.labels(stream).inc(sum(account.read for account in record.accounts))
        for fate in RECORD_FATES:
            self._records.labels(stream, fate).inc(sum(getattr(account, fate) for account in record.accounts))
        _add_counts(self._pane_rows, stream, record.panes)
        for part, milliseconds in record.durations_ms.items():
            self._part_durations.labels(stream, part).observe(milliseconds / 1000)
        self._part_durations.labels(stream, WHOLE_BATCH_PART).observe(
            sum(record.durations_ms.values()) / 1000
        )
        if is_local:
            self.show_progress(record)

    def show_lag(self, stream: str, records: int) -> None:
        """Set the number of records that wait for a stream."""
        for gauge in (self._lag, self._deprecated_lag):
            gauge.labels(stream).set(records)

    def show_progress(self, record: BatchRecord) -> None:
        """Set the gauges of a stream to its newest batch."""
        stream = record.stream
        self.show_lag(stream, record.lag_records)
        self._state_rows.labels(stream).set(record.state_rows)
        self._last_batch_clock.labels(stream).set(record.commit_time_ms / 1000)
        if record.watermark_ms is not None:
            self._watermark.labels(stream).set(record.watermark_ms / 1000)

    def record_health(self, health: StreamHealth) -> None:
        """Set the state of a stream, and count a failure."""
        self._running.labels(health.stream).set(health.state == StreamState.RUNNING)
        for state in STREAM_STATES:
            self._state.labels(health.stream, state).set(health.state == state)
        self._failures.labels(health.stream).inc(health.state.is_failure)

    def remove_stream(self, stream: str) -> None:
        """Remove the gauges of a stream that another host runs; its counters stay."""
        for gauge in (
            self._lag,
            self._deprecated_lag,
            self._watermark,
            self._last_batch_clock,
            self._state_rows,
            self._running,
        ):
            gauge.remove(stream)
        for state in STREAM_STATES:
            self._state.remove(stream, state)


def _add_counts(counter: Counter, stream: str, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        counter.labels(stream, name).inc(count)
