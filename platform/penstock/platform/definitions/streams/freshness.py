"""Checks that streams keep up: watermark delay, consumer lag and host; recorded on change and every five minutes.

Dagster's freshness policies look at materializations, but a stream that falls behind still materializes. A topic
without new records is not a fault, although its watermark grows old. So the batch sensor asks here which streams
are up to date.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    DefaultSensorStatus,
    Definitions,
    MetadataValue,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from penstock.engine.host.control import BatchRecord, DesiredRunState
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import StreamOverview, read_overview
from penstock.platform.definitions.asset_keys import stream_key
from penstock.platform.definitions.scheduled_checks import build_joint_checks, to_evaluation
from penstock.platform.services.alerts import Alert, AlertHandler
from penstock.platform.services.watermark_ahead import (
    TROUBLESHOOTING_PAGE,
    describe_ahead,
    measure_ahead_ms,
)

SENSOR_INTERVAL_S = 60
REPEAT_INTERVAL_MS = 300_000
"""How often an unchanged result is recorded. An evaluation takes 4 KB of the event log: for one stream 3 MB a day,
where the reports of its batches take 60 MB."""
RECORDED_WHEN = "Evaluated each minute; recorded on each change, and every 5 minutes."
WATERMARK_DELAY_CHECK, LAG_CHECK, HOST_CHECK = (
    "watermark_delay_seconds",
    "consumer_lag_records",
    "stream_hosted",
)
FRESHNESS_CHECKS = (WATERMARK_DELAY_CHECK, LAG_CHECK, HOST_CHECK)
TROUBLE_STATES = {WATERMARK_DELAY_CHECK: "delayed", LAG_CHECK: "lagging", HOST_CHECK: "without a host"}
RECOVERY_STATES = {WATERMARK_DELAY_CHECK: "up to date", LAG_CHECK: "up to date", HOST_CHECK: "hosted again"}


@dataclass(frozen=True)
class FreshnessLimits:
    """Maximum age of a watermark, maximum number of waiting records, and maximum time without a host.

    `max_watermark_ahead_ms` is how far a watermark may be ahead of the clock.
    """

    max_watermark_delay_ms: int
    max_lag_records: int
    max_without_host_ms: int
    max_watermark_ahead_ms: int = 60_000


@dataclass(frozen=True)
class FreshnessResult:
    """The result of one check of one stream, with the measured value."""

    stream: str
    check: str
    passed: bool
    state: str
    measured_value: float

    @property
    def key(self) -> str:
        """The key of the result in the sensor's cursor."""
        return f"{self.stream}/{self.check}"


@dataclass(frozen=True)
class FreshnessMonitor:
    """Checks the streams that should have a host. Archives have no watermark."""

    pipelines: Sequence[str]
    archives: Sequence[str]
    open_store: Callable[[], ControlStore]
    now_ms: Callable[[], int]
    limits: FreshnessLimits
    stream_limits: Mapping[str, FreshnessLimits] = field(default_factory=dict)
    """Limits of single streams."""

    def evaluate_checks(self) -> Iterator[FreshnessResult]:
        """Yield the checks of every stream that should run or be paused; a paused stream needs only a host."""
        known_streams = {*self.pipelines, *self.archives}
        for stream_overview in read_overview(self.open_store()):
            if (
                stream_overview.stream not in known_streams
                or stream_overview.desired is None
                or not stream_overview.desired.needs_host
            ):
                continue
            yield self._check_host(stream_overview)
            if (
                stream_overview.desired.desired is DesiredRunState.RUNNING
                and stream_overview.last is not None
            ):
                yield self._check_lag(stream_overview, stream_overview.last)
                if stream_overview.last.watermark_ms is not None:
                    yield self._check_watermark_delay(
                        stream_overview, stream_overview.last, stream_overview.last.watermark_ms
                    )

    def find_caught_up(self) -> set[str]:
        """Return the running pipelines whose newest batch left no record waiting and that pass every check."""
        results = list(self.evaluate_checks())
        caught_up = {
            result.stream for result in results if result.check == LAG_CHECK and not result.measured_value
        } & set(self.pipelines)
        return caught_up - {result.stream for result in results if not result.passed}

    def _check_host(self, stream_overview: StreamOverview) -> FreshnessResult:
        """Check the time without a host: since it was requested, its lease expired or its last host reported."""
        now, lease, health = self.now_ms(), stream_overview.lease, stream_overview.health
        if lease is not None and lease.expires_at_ms > now:
            return FreshnessResult(
                stream_overview.stream,
                HOST_CHECK,
                passed=True,
                state=f"hosted by {lease.holder}",
                measured_value=0,
            )
        since_ms = max(
            stream_overview.desired_at_ms, lease.expires_at_ms if lease else 0, health.at_ms if health else 0
        )
        health_text = f"; {health.state}: {health.reason}" if health and health.reason else ""
        allowed_ms, without_host_ms = self.limits.max_without_host_ms, now - since_ms
        state = (
            f"no host for {_format_seconds(without_host_ms)} s, "
            f"limit {_format_seconds(allowed_ms)} s{health_text}"
        )
        return FreshnessResult(
            stream_overview.stream,
            HOST_CHECK,
            without_host_ms <= allowed_ms and not _has_failed(stream_overview),
            state,
            round(without_host_ms / 1000, 1),
        )

    def _check_lag(self, stream_overview: StreamOverview, last_batch: BatchRecord) -> FreshnessResult:
        """Check the number of waiting records, and how long any waits without a batch (it hangs or fails)."""
        limits, backlog = self._limits_for(stream_overview.stream), stream_overview.backlog
        state, is_stalled = (
            f"{stream_overview.lag_records:,} records wait, limit {limits.max_lag_records:,}",
            False,
        )
        if backlog is not None:
            stalled_ms = self.now_ms() - backlog.since_ms
            is_stalled = stalled_ms > limits.max_watermark_delay_ms
            state += (
                f"; no batch for {_format_seconds(stalled_ms)} s, "
                f"limit {_format_seconds(limits.max_watermark_delay_ms)} s"
            )
        passed = last_batch.lag_records <= limits.max_lag_records and not is_stalled
        return FreshnessResult(stream_overview.stream, LAG_CHECK, passed, state, stream_overview.lag_records)

    def _check_watermark_delay(
        self, stream_overview: StreamOverview, last_batch: BatchRecord, watermark_ms: int
    ) -> FreshnessResult:
        """Check the watermark; an old one is a fault if records wait or pass it, or if no host reads them."""
        now, limits = self.now_ms(), self._limits_for(stream_overview.stream)
        allowed_ms, age_ms = limits.max_watermark_delay_ms, now - watermark_ms
        if ahead_ms := measure_ahead_ms(watermark_ms, now, limits.max_watermark_ahead_ms):
            return FreshnessResult(
                stream_overview.stream,
                WATERMARK_DELAY_CHECK,
                passed=False,
                state=f"{describe_ahead(ahead_ms)}, so new records are late; see {TROUBLESHOOTING_PAGE}",
                measured_value=round(age_ms / 1000, 1),
            )
        is_flowing_past = (
            last_batch.kind == "data"
            and last_batch.clock_ms - watermark_ms > allowed_ms >= now - last_batch.clock_ms
        )
        is_idle = (
            not last_batch.lag_records and not is_flowing_past and self._check_host(stream_overview).passed
        )
        state_text = f"the watermark is {_format_seconds(age_ms)} s old, "
        state_text += "no record waits" if is_idle else f"limit {_format_seconds(allowed_ms)} s"
        return FreshnessResult(
            stream_overview.stream,
            WATERMARK_DELAY_CHECK,
            is_idle or age_ms <= allowed_ms,
            state_text,
            round(age_ms / 1000, 1),
        )

    def _limits_for(self, stream: str) -> FreshnessLimits:
        return self.stream_limits.get(stream, self.limits)

    def evaluate(
        self, context: SensorEvaluationContext, raise_alert: AlertHandler
    ) -> SensorResult | SkipReason:
        """Run one tick of the sensor."""
        reported: dict[str, list[int]] = json.loads(context.cursor or "{}")
        now = self.now_ms()
        events = []
        for result in self.evaluate_checks():
            previous = reported.get(result.key)
            is_changed = previous is None or bool(previous[0]) != result.passed
            if is_changed or now - previous[1] >= REPEAT_INTERVAL_MS:  # type: ignore[index]  # None is a change
                key = AssetCheckKey(stream_key(result.stream), result.check)
                events.append(to_evaluation(_check_result(key, result, now)))
                reported[result.key] = [int(result.passed), now]
            if is_changed and (previous is not None or not result.passed):
                raise_alert(
                    Alert(
                        result.stream,
                        _alert_state(result),
                        result.state,
                        now,
                    )
                )
        if not events:
            return SkipReason("No check changed")
        return SensorResult(asset_events=events, cursor=json.dumps(reported))


def build_freshness_definitions(monitor: FreshnessMonitor, raise_alert: AlertHandler) -> Definitions:
    """Build the checks and the sensor that reports them."""
    return Definitions(
        asset_checks=[_build_checks(monitor)],
        sensors=[
            SensorDefinition(
                name="freshness",
                evaluation_fn=lambda context: monitor.evaluate(context, raise_alert),
                minimum_interval_seconds=SENSOR_INTERVAL_S,
                default_status=DefaultSensorStatus.RUNNING,
                description="Compares watermark delay, consumer lag and host of each stream with its limits.",
            )
        ],
    )


def _build_checks(monitor: FreshnessMonitor) -> AssetChecksDefinition:
    archive_checks = {
        LAG_CHECK: "Few enough records wait, and none without a batch for long.",
        HOST_CHECK: "A host runs the stream, if it should run.",
    }
    pipeline_checks = {
        WATERMARK_DELAY_CHECK: "The watermark is recent, unless no records arrive, and not ahead of the clock.",
        **archive_checks,
    }
    checks_by_streams = ((monitor.pipelines, pipeline_checks), (monitor.archives, archive_checks))
    specs = [
        AssetCheckSpec(name, asset=stream_key(stream), description=f"{text} {RECORDED_WHEN}")
        for streams, descriptions in checks_by_streams
        for stream in streams
        for name, text in descriptions.items()
    ]

    def run_selected(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        results = {(result.stream, result.check): result for result in monitor.evaluate_checks()}
        for key in context.selected_asset_check_keys:
            yield _check_result(key, results.get((key.asset_key.path[-1], key.name)), monitor.now_ms())

    return build_joint_checks("freshness", specs, run_selected)


def _check_result(key: AssetCheckKey, result: FreshnessResult | None, now_ms: int) -> AssetCheckResult:
    figures: dict[str, Any] = (
        {"state": "should not run"}
        if result is None
        else {"state": result.state, result.check: result.measured_value}
    )
    return AssetCheckResult(
        passed=result is None or result.passed,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.WARN,
        metadata={**figures, "evaluated_at": MetadataValue.timestamp(now_ms / 1000)},
    )


def _has_failed(stream_overview: StreamOverview) -> bool:
    """Whether the stream failed for good since it was requested."""
    health = stream_overview.health
    return (
        health is not None
        and health.state is StreamState.FAILED
        and health.at_ms >= stream_overview.desired_at_ms
    )


def _alert_state(result: FreshnessResult) -> str:
    if result.check == WATERMARK_DELAY_CHECK and not result.passed and result.measured_value < 0:
        return "ahead of the clock"
    return (RECOVERY_STATES if result.passed else TROUBLE_STATES)[result.check]


def _format_seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.0f}"
