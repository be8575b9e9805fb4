"""Files that cannot be used: each is the trouble of what it is about and says why there; all else is as it was."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetKey,
    DefaultSensorStatus,
    Definitions,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    multi_asset_check,
)

from penstock.ingestion.contracts import CATALOG
from penstock.pipelines import catalog
from penstock.pipelines.own_modules import file_of
from penstock.platform.definitions.names import stream_key, topic_key
from penstock.platform.definitions.scheduled import stays
from penstock.platform.streams import problem_of
from penstock.quality.expectations.suite import FOLDER

EVERY_SECONDS = 30
PIPELINE, CONTRACT, SUITE = "pipeline", "contract", "suite"


@dataclass(frozen=True)
class Broken:
    """A file that cannot be used, what it is (pipeline, contract or suite), the asset that it is about, and why."""

    what: str
    asset: AssetKey
    problem: str
    file: Path | None = None

    @property
    def name(self) -> str:
        """The stream, the topic or the table."""
        return self.asset.path[-1]


def broken_pipelines() -> Iterator[Broken]:
    """Every pipeline of the catalog that cannot be loaded."""
    for name in catalog.names():
        if (problem := problem_of(name)) is not None:
            yield Broken(PIPELINE, stream_key(name), str(problem), file_of(name))


def broken_contracts(problems: Mapping[str, Exception]) -> Iterator[Broken]:
    """Contracts that cannot be used, by their topics."""
    for topic, problem in problems.items():
        yield Broken(CONTRACT, topic_key(topic), str(problem), CATALOG / f"{topic}.yaml")


def broken_suites(problems: Mapping[str, Exception]) -> Iterator[Broken]:
    """Suites that cannot be used, by what they are about."""
    for about, problem in problems.items():
        yield Broken(SUITE, AssetKey(about.split("/")), str(problem), FOLDER / f"{about}.yaml")


def broken_definitions(broken: Sequence[Broken]) -> Definitions:
    """A check of each that fails and says why, and the sensor that makes it without being asked."""
    return Definitions(asset_checks=[_checks(broken)] if broken else [], sensors=[_sensor(broken)])


def _check_name(one: Broken) -> str:
    return f"{one.what}_can_be_used"


def _checks(broken: Sequence[Broken]) -> AssetChecksDefinition:
    specs = [AssetCheckSpec(_check_name(one), asset=one.asset, description=one.problem) for one in broken]
    problems = {spec.key: one.problem for spec, one in zip(specs, broken, strict=True)}

    @multi_asset_check(name="files", specs=specs, can_subset=True)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in sorted(context.selected_asset_check_keys):
            yield AssetCheckResult(
                passed=False,
                asset_key=key.asset_key,
                check_name=key.name,
                severity=AssetCheckSeverity.ERROR,
                metadata={"problem": problems[key]},
            )

    return check


def _sensor(broken: Sequence[Broken]) -> SensorDefinition:
    def evaluate(context: SensorEvaluationContext) -> SensorResult | SkipReason:
        now = {f"{one.what} {one.asset.to_user_string()}": one.problem for one in broken}
        if json.loads(context.cursor or "{}") == now:
            return SkipReason("the files are as they were when they were last told of")
        events = [
            AssetCheckEvaluation(
                asset_key=one.asset,
                check_name=_check_name(one),
                passed=False,
                severity=AssetCheckSeverity.ERROR,
                metadata={"problem": one.problem},
            )
            for one in broken
        ]
        return SensorResult(asset_events=events, cursor=json.dumps(now))

    return SensorDefinition(
        name="broken_files",
        evaluation_fn=evaluate,
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description="Tells of pipelines, contracts and suites that could not be used when all was loaded.",
    )
