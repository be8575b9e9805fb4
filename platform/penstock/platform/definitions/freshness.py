"""Whether streams keep up: checks of watermark age and lag, told when they change, and each hour.

Dagster's own freshness policies look at materializations, and a stream that falls behind materializes all the time.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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

from penstock.pipelines.host.control import Desired
from penstock.platform.alerts import Alert, Raise
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import StreamOverview, overview
from penstock.platform.definitions.names import stream_key

EVERY_SECONDS = 60
TOLD_AGAIN_MS = 3_600_000
AGE, LAG = "watermark_age", "lag"


@dataclass(frozen=True)
class Limits:
    """How old a watermark may be, and how many records may wait."""

    age_ms: int
    records: int


@dataclass(frozen=True)
class Judged:
    """One check of one stream, and the figure that it goes by."""

    stream: str
    check: str
    passed: bool
    state: str
    figure: float

    @property
    def name(self) -> str:
        """By which it is found again."""
        return f"{self.stream}/{self.check}"


@dataclass(frozen=True)
class Freshness:
    """Judges the streams that are to run."""

    streams: Sequence[str]
    store: Callable[[], ControlStore]
    now_ms: Callable[[], int]
    limits: Limits

    def judged(self) -> Iterator[Judged]:
        """Every check of every stream that is to run, and has run."""
        for found in overview(self.store()):
            wanted = found.desired is not None and found.desired.desired is Desired.RUNNING
            if found.stream in self.streams and wanted and found.last is not None:
                yield from self._of(found)

    def _of(self, found: StreamOverview) -> Iterator[Judged]:
        assert found.last is not None
        lag, allowed = found.last.lag_records, self.limits
        told = f"{lag:,} records wait; {allowed.records:,} may"
        yield Judged(found.stream, LAG, lag <= allowed.records, told, lag)
        if found.last.watermark_ms is not None:
            age = self.now_ms() - found.last.watermark_ms
            told = f"the watermark is {age / 1000:,.0f} s old; {allowed.age_ms / 1000:,.0f} s are allowed"
            yield Judged(found.stream, AGE, age <= allowed.age_ms, told, round(age / 1000, 1))

    def evaluate(self, context: SensorEvaluationContext, alert: Raise) -> SensorResult | SkipReason:
        """One tick of the sensor."""
        told: dict[str, list[int]] = json.loads(context.cursor or "{}")
        now = self.now_ms()
        events = []
        for one in self.judged():
            before = told.get(one.name)
            changed = before is None or bool(before[0]) != one.passed
            if changed or now - before[1] >= TOLD_AGAIN_MS:  # type: ignore[index]  # None is a change
                events.append(_evaluation(one))
                told[one.name] = [int(one.passed), now]
            if changed and (before is not None or not one.passed):
                alert(Alert(one.stream, "fresh again" if one.passed else "behind", one.state, now))
        if not events:
            return SkipReason("every stream keeps up, or does not, as it did")
        return SensorResult(asset_events=events, cursor=json.dumps(told))


def freshness_definitions(freshness: Freshness, alert: Raise) -> Definitions:
    """The checks, and the sensor that tells of them."""
    return Definitions(
        asset_checks=[_checks(freshness)],
        sensors=[
            SensorDefinition(
                name="freshness",
                evaluation_fn=lambda context: freshness.evaluate(context, alert),
                minimum_interval_seconds=EVERY_SECONDS,
                default_status=DefaultSensorStatus.RUNNING,
                description="Compares watermark age and lag of streams with what is allowed, and tells of changes.",
            )
        ],
    )


def _checks(freshness: Freshness) -> AssetChecksDefinition:
    says = {AGE: "Is the watermark young enough?", LAG: "Do few enough records wait?"}
    specs = [
        AssetCheckSpec(name, asset=stream_key(stream), description=text)
        for stream in freshness.streams
        for name, text in says.items()
    ]

    @multi_asset_check(name="freshness", specs=specs, can_subset=True)
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        found = {(one.stream, one.check): one for one in freshness.judged()}
        for key in context.selected_asset_check_keys:
            one = found.get((key.asset_key.path[-1], key.name))
            yield AssetCheckResult(
                passed=one is None or one.passed,
                asset_key=key.asset_key,
                check_name=key.name,
                severity=AssetCheckSeverity.WARN,
                metadata={"state": "it is not to run"} if one is None else _metadata(one),
            )

    return check


def _evaluation(one: Judged) -> AssetCheckEvaluation:
    return AssetCheckEvaluation(
        asset_key=stream_key(one.stream),
        check_name=one.check,
        passed=one.passed,
        metadata=_metadata(one),
        severity=AssetCheckSeverity.WARN,
    )


def _metadata(one: Judged) -> dict[str, str | float]:
    return {"state": one.state, one.check: one.figure}
