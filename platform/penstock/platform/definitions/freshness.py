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

from penstock.pipelines.host.control import BatchRecord, Desired
from penstock.platform.alerts import Alert, Raise
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import StreamOverview, overview
from penstock.platform.definitions.names import stream_key
from penstock.platform.definitions.scheduled import stays

EVERY_SECONDS = 60
TOLD_AGAIN_MS = 3_600_000
AGE, LAG, HELD = "watermark_age", "lag", "held"
TROUBLE = {AGE: "behind", LAG: "behind", HELD: "without a host"}
OVER = {AGE: "fresh again", LAG: "fresh again", HELD: "held again"}


@dataclass(frozen=True)
class Limits:
    """How old a watermark may be, how many records may wait, and how long a stream may be without a host."""

    age_ms: int
    records: int
    unheld_ms: int


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
    """Judges the streams that a host is to have. Archives have no watermark."""

    pipelines: Sequence[str]
    archives: Sequence[str]
    store: Callable[[], ControlStore]
    now_ms: Callable[[], int]
    limits: Limits
    own: Mapping[str, Limits] = field(default_factory=dict)
    """Those of single streams."""

    def judged(self) -> Iterator[Judged]:
        """Every check of every stream that is to run or to be paused; what it did only where it is to run."""
        known = {*self.pipelines, *self.archives}
        for found in overview(self.store()):
            if found.stream not in known or found.desired is None or not found.desired.held:
                continue
            yield self._host(found)
            if found.desired.desired is Desired.RUNNING and found.last is not None:
                yield self._lag(found, found.last)
                if found.last.watermark_ms is not None:
                    yield self._age(found, found.last, found.last.watermark_ms)

    def keeping_up(self) -> set[str]:
        """The pipelines that are to run, left no record with their newest batch, and pass every check."""
        judged = list(self.judged())
        done = {one.stream for one in judged if one.check == LAG and not one.figure} & set(self.pipelines)
        return done - {one.stream for one in judged if not one.passed}

    def _host(self, found: StreamOverview) -> Judged:
        """Without a host since it was wanted, since a lease ran out, or since its host last said anything of it."""
        now, lease, told = self.now_ms(), found.lease, found.health
        if lease is not None and lease.expires_at_ms > now:
            return Judged(found.stream, HELD, passed=True, state=f"{lease.holder} has it", figure=0)
        since = max(found.desired_at_ms, lease.expires_at_ms if lease else 0, told.at_ms if told else 0)
        said = f", and it is {told.state}: {told.reason}" if told and told.reason else ""
        allowed, alone = self.limits.unheld_ms, now - since
        state = f"no host has it for {_seconds(alone)} s; {_seconds(allowed)} s are allowed{said}"
        return Judged(found.stream, HELD, alone <= allowed, state, round(alone / 1000, 1))

    def _lag(self, found: StreamOverview, last: BatchRecord) -> Judged:
        """Too many records wait, or any for too long without a batch: then one hangs, or is tried in vain."""
        limits, waiting = self._limits(found.stream), found.waiting
        state, hangs = f"{found.lag_records:,} records wait; {limits.records:,} may", False
        if waiting is not None:
            alone = self.now_ms() - waiting.since_ms
            hangs = alone > limits.age_ms
            state += f"; none was committed for {_seconds(alone)} s, {_seconds(limits.age_ms)} s are allowed"
        passed = last.lag_records <= limits.records and not hangs
        return Judged(found.stream, LAG, passed, state, found.lag_records)

    def _age(self, found: StreamOverview, last: BatchRecord, watermark_ms: int) -> Judged:
        """An old watermark is a fault where records wait, where they flow past it, and where nobody reads them."""
        now, allowed = self.now_ms(), self._limits(found.stream).age_ms
        age = now - watermark_ms
        passed_by = last.kind == "data" and last.clock_ms - watermark_ms > allowed >= now - last.clock_ms
        quiet = not last.lag_records and not passed_by and self._host(found).passed
        told = f"the watermark is {_seconds(age)} s old; "
        told += "no record waits" if quiet else f"{_seconds(allowed)} s are allowed"
        return Judged(found.stream, AGE, quiet or age <= allowed, told, round(age / 1000, 1))

    def _limits(self, stream: str) -> Limits:
        return self.own.get(stream, self.limits)

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
                alert(Alert(one.stream, (OVER if one.passed else TROUBLE)[one.check], one.state, now))
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
                description="Compares watermark age, lag and host of streams with what is allowed.",
            )
        ],
    )


def _checks(freshness: Freshness) -> AssetChecksDefinition:
    of_archives = {
        LAG: "Do few enough records wait, and none for long?",
        HELD: "Has a host the stream, where it is to run?",
    }
    of_pipelines = {AGE: "Is the watermark young enough, unless nothing comes?", **of_archives}
    kinds = ((freshness.pipelines, of_pipelines), (freshness.archives, of_archives))
    specs = [
        AssetCheckSpec(name, asset=stream_key(stream), description=text)
        for streams, says in kinds
        for stream in streams
        for name, text in says.items()
    ]

    @multi_asset_check(name="freshness", specs=specs, can_subset=True)
    @stays
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


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.0f}"


def _metadata(one: Judged) -> dict[str, str | float]:
    return {"state": one.state, one.check: one.figure}
