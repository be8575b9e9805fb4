"""Whether streams keep up: checks of watermark age, lag and host, told when they change, and each hour.

Dagster's own freshness policies look at materializations, and a stream that falls behind materializes all the time.
A topic that nobody writes to is no fault: its watermark grows old with nothing to be done about it. So that
Dagster's policy does not take it for one, the sensor of batches is told here who keeps up.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    DefaultSensorStatus,
    Definitions,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    multi_asset_check,
)

from penstock.engine.host.control import BatchRecord, DesiredRunState
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import StreamOverview, read_overview
from penstock.platform.definitions.asset_keys import stream_key
from penstock.platform.definitions.scheduled_checks import report_runless
from penstock.platform.services.alerts import Alert, AlertHandler

SENSOR_INTERVAL_S = 60
REPEAT_INTERVAL_MS = 3_600_000
WATERMARK_AGE_CHECK, LAG_CHECK, HOST_CHECK = "watermark_age", "lag", "held"
TROUBLE_STATES = {WATERMARK_AGE_CHECK: "behind", LAG_CHECK: "behind", HOST_CHECK: "without a host"}
RECOVERY_STATES = {WATERMARK_AGE_CHECK: "fresh again", LAG_CHECK: "fresh again", HOST_CHECK: "held again"}


@dataclass(frozen=True)
class FreshnessLimits:
    """How old a watermark may be, how many records may wait, and how long a stream may be without a host."""

    max_watermark_age_ms: int
    max_lag_records: int
    max_without_host_ms: int


@dataclass(frozen=True)
class FreshnessResult:
    """One check of one stream, and the figure that it goes by."""

    stream: str
    check: str
    passed: bool
    state: str
    measured_value: float

    @property
    def key(self) -> str:
        """By which it is found again."""
        return f"{self.stream}/{self.check}"


@dataclass(frozen=True)
class FreshnessMonitor:
    """Judges the streams that a host is to have. Archives have no watermark."""

    pipelines: Sequence[str]
    archives: Sequence[str]
    open_store: Callable[[], ControlStore]
    now_ms: Callable[[], int]
    limits: FreshnessLimits
    stream_limits: Mapping[str, FreshnessLimits] = field(default_factory=dict)
    """Those of single streams."""

    def evaluate_checks(self) -> Iterator[FreshnessResult]:
        """Every check of every stream that is to run or to be paused; what it did only where it is to run."""
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
                    yield self._check_watermark_age(
                        stream_overview, stream_overview.last, stream_overview.last.watermark_ms
                    )

    def find_caught_up(self) -> set[str]:
        """The pipelines that are to run, left no record with their newest batch, and pass every check."""
        results = list(self.evaluate_checks())
        caught_up = {
            result.stream for result in results if result.check == LAG_CHECK and not result.measured_value
        } & set(self.pipelines)
        return caught_up - {result.stream for result in results if not result.passed}

    def _check_host(self, stream_overview: StreamOverview) -> FreshnessResult:
        """Without a host since it was wanted, since a lease ran out, or since its host last said anything of it."""
        now, lease, health = self.now_ms(), stream_overview.lease, stream_overview.health
        if lease is not None and lease.expires_at_ms > now:
            return FreshnessResult(
                stream_overview.stream,
                HOST_CHECK,
                passed=True,
                state=f"{lease.holder} has it",
                measured_value=0,
            )
        since_ms = max(
            stream_overview.desired_at_ms, lease.expires_at_ms if lease else 0, health.at_ms if health else 0
        )
        health_text = f", and it is {health.state}: {health.reason}" if health and health.reason else ""
        allowed_ms, without_host_ms = self.limits.max_without_host_ms, now - since_ms
        state = (
            f"no host has it for {_format_seconds(without_host_ms)} s; "
            f"{_format_seconds(allowed_ms)} s are allowed{health_text}"
        )
        return FreshnessResult(
            stream_overview.stream,
            HOST_CHECK,
            without_host_ms <= allowed_ms,
            state,
            round(without_host_ms / 1000, 1),
        )

    def _check_lag(self, stream_overview: StreamOverview, last_batch: BatchRecord) -> FreshnessResult:
        """Too many records wait, or any for too long without a batch: then one hangs, or is tried in vain."""
        limits, backlog = self._limits_for(stream_overview.stream), stream_overview.waiting
        state, is_stalled = (
            f"{stream_overview.lag_records:,} records wait; {limits.max_lag_records:,} may",
            False,
        )
        if backlog is not None:
            stalled_ms = self.now_ms() - backlog.since_ms
            is_stalled = stalled_ms > limits.max_watermark_age_ms
            state += (
                f"; none was committed for {_format_seconds(stalled_ms)} s, "
                f"{_format_seconds(limits.max_watermark_age_ms)} s are allowed"
            )
        passed = last_batch.lag_records <= limits.max_lag_records and not is_stalled
        return FreshnessResult(stream_overview.stream, LAG_CHECK, passed, state, stream_overview.lag_records)

    def _check_watermark_age(
        self, stream_overview: StreamOverview, last_batch: BatchRecord, watermark_ms: int
    ) -> FreshnessResult:
        """An old watermark is a fault where records wait, where they flow past it, and where nobody reads them."""
        now, allowed_ms = self.now_ms(), self._limits_for(stream_overview.stream).max_watermark_age_ms
        age_ms = now - watermark_ms
        is_flowing_past = (
            last_batch.kind == "data"
            and last_batch.clock_ms - watermark_ms > allowed_ms >= now - last_batch.clock_ms
        )
        is_idle = (
            not last_batch.lag_records and not is_flowing_past and self._check_host(stream_overview).passed
        )
        state_text = f"the watermark is {_format_seconds(age_ms)} s old; "
        state_text += "no record waits" if is_idle else f"{_format_seconds(allowed_ms)} s are allowed"
        return FreshnessResult(
            stream_overview.stream,
            WATERMARK_AGE_CHECK,
            is_idle or age_ms <= allowed_ms,
            state_text,
            round(age_ms / 1000, 1),
        )

    def _limits_for(self, stream: str) -> FreshnessLimits:
        return self.stream_limits.get(stream, self.limits)

    def evaluate(
        self, context: SensorEvaluationContext, raise_alert: AlertHandler
    ) -> SensorResult | SkipReason:
        """One tick of the sensor."""
        reported: dict[str, list[int]] = json.loads(context.cursor or "{}")
        now = self.now_ms()
        events = []
        for result in self.evaluate_checks():
            previous = reported.get(result.key)
            is_changed = previous is None or bool(previous[0]) != result.passed
            if is_changed or now - previous[1] >= REPEAT_INTERVAL_MS:  # type: ignore[index]  # None is a change
                events.append(_to_evaluation(result))
                reported[result.key] = [int(result.passed), now]
            if is_changed and (previous is not None or not result.passed):
                raise_alert(
                    Alert(
                        result.stream,
                        (RECOVERY_STATES if result.passed else TROUBLE_STATES)[result.check],
                        result.state,
                        now,
                    )
                )
        if not events:
            return SkipReason("every stream keeps up, or does not, as it did")
        return SensorResult(asset_events=events, cursor=json.dumps(reported))


def build_freshness_definitions(monitor: FreshnessMonitor, raise_alert: AlertHandler) -> Definitions:
    """The checks, and the sensor that tells of them."""
    return Definitions(
        asset_checks=[_build_checks(monitor)],
        sensors=[
            SensorDefinition(
                name="freshness",
                evaluation_fn=lambda context: monitor.evaluate(context, raise_alert),
                minimum_interval_seconds=SENSOR_INTERVAL_S,
                default_status=DefaultSensorStatus.RUNNING,
                description="Compares watermark age, lag and host of streams with what is allowed.",
            )
        ],
    )


def _build_checks(monitor: FreshnessMonitor) -> AssetChecksDefinition:
    archive_checks = {
        LAG_CHECK: "Do few enough records wait, and none for long?",
        HOST_CHECK: "Has a host the stream, where it is to run?",
    }
    pipeline_checks = {
        WATERMARK_AGE_CHECK: "Is the watermark young enough, unless nothing comes?",
        **archive_checks,
    }
    checks_by_streams = ((monitor.pipelines, pipeline_checks), (monitor.archives, archive_checks))
    specs = [
        AssetCheckSpec(name, asset=stream_key(stream), description=text)
        for streams, descriptions in checks_by_streams
        for stream in streams
        for name, text in descriptions.items()
    ]

    @multi_asset_check(name="freshness", specs=specs, can_subset=True)
    @report_runless
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        results = {(result.stream, result.check): result for result in monitor.evaluate_checks()}
        for key in context.selected_asset_check_keys:
            result = results.get((key.asset_key.path[-1], key.name))
            yield AssetCheckResult(
                passed=result is None or result.passed,
                asset_key=key.asset_key,
                check_name=key.name,
                severity=AssetCheckSeverity.WARN,
                metadata={"state": "it is not to run"} if result is None else _result_metadata(result),
            )

    return check


def _to_evaluation(result: FreshnessResult) -> AssetCheckEvaluation:
    return AssetCheckEvaluation(
        asset_key=stream_key(result.stream),
        check_name=result.check,
        passed=result.passed,
        metadata=_result_metadata(result),
        severity=AssetCheckSeverity.WARN,
    )


def _format_seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.0f}"


def _result_metadata(result: FreshnessResult) -> dict[str, str | float]:
    return {"state": result.state, result.check: result.measured_value}
