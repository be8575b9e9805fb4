"""Invalid pipelines, contracts and suites: each fails a check of its asset; everything else works as usual."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster import (
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
)

from penstock.engine.user_modules import find_pipeline_file
from penstock.ingestion.contracts import CATALOG_FOLDER
from penstock.pipelines import catalog
from penstock.platform.definitions.asset_keys import stream_key, topic_key
from penstock.platform.definitions.scheduled_checks import build_checks, to_evaluation
from penstock.platform.services.stream_catalog import find_invalid_pipelines
from penstock.quality.expectations.suite import SUITES_FOLDER

SENSOR_INTERVAL_S = 30
PIPELINE_FILE, CONTRACT_FILE, SUITE_FILE = "pipeline", "contract", "suite"


@dataclass(frozen=True)
class LoadError:
    """An invalid file: its kind, the asset that it defines, and the error."""

    file_kind: str
    asset_key: AssetKey
    message: str
    file: Path | None = None

    @property
    def name(self) -> str:
        """Name of the stream, topic or table."""
        return self.asset_key.path[-1]


def find_pipeline_errors() -> Iterator[LoadError]:
    """Yield every pipeline of the catalog that cannot be loaded."""
    keys: set[AssetKey] = set()
    for name, error in find_invalid_pipelines().items():
        keys.add(key := _choose_error_key(name, keys))
        yield LoadError(PIPELINE_FILE, key, str(error), find_pipeline_file(name))


def _choose_error_key(name: str, used_keys: Collection[AssetKey]) -> AssetKey:
    """Return the asset of an invalid pipeline; that of a name which Dagster refuses has a similar name."""
    if catalog.is_pipeline_name(name):
        return stream_key(name)
    key = AssetKey(["files", catalog.to_pipeline_name(name)])
    while key in used_keys:
        key = AssetKey(["files", f"{key.path[-1]}_"])
    return key


def find_contract_errors(errors: Mapping[str, Exception]) -> Iterator[LoadError]:
    """Yield the contracts that cannot be loaded, by topic."""
    for topic, error in errors.items():
        yield LoadError(CONTRACT_FILE, topic_key(topic), str(error), CATALOG_FOLDER / f"{topic}.yaml")


def find_suite_errors(errors: Mapping[str, Exception]) -> Iterator[LoadError]:
    """Yield the suites that cannot be loaded, by subject."""
    for subject, error in errors.items():
        yield LoadError(
            SUITE_FILE, AssetKey(subject.split("/")), str(error), SUITES_FOLDER / f"{subject}.yaml"
        )


def build_load_error_definitions(
    load_errors: Sequence[LoadError], name: str = "definition_errors"
) -> Definitions:
    """Build a failing check for each error, and the sensor of a name that reports the checks."""
    checks = [_build_checks(load_errors, f"{name}_checks")] if load_errors else []
    return Definitions(asset_checks=checks, sensors=[_build_sensor(load_errors, name)])


def _load_check_name(load_error: LoadError) -> str:
    return f"{load_error.file_kind}_valid"


def _build_checks(load_errors: Sequence[LoadError], name: str) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(
            _load_check_name(load_error), asset=load_error.asset_key, description=load_error.message
        )
        for load_error in load_errors
    ]
    errors_by_key = {spec.key: load_error for spec, load_error in zip(specs, load_errors, strict=True)}
    return build_checks(name, specs, lambda _context, key: _failed_result(errors_by_key[key]))


def _failed_result(load_error: LoadError) -> AssetCheckResult:
    return AssetCheckResult(
        passed=False,
        asset_key=load_error.asset_key,
        check_name=_load_check_name(load_error),
        severity=AssetCheckSeverity.ERROR,
        metadata={"problem": load_error.message},
    )


def _build_sensor(load_errors: Sequence[LoadError], name: str) -> SensorDefinition:
    def evaluate(context: SensorEvaluationContext) -> SensorResult | SkipReason:
        current = {
            f"{load_error.file_kind} {load_error.asset_key.to_user_string()}": load_error.message
            for load_error in load_errors
        }
        if json.loads(context.cursor or "{}") == current:
            return SkipReason("No file became valid or invalid since the last report")
        events = [to_evaluation(_failed_result(load_error)) for load_error in load_errors]
        return SensorResult(asset_events=events, cursor=json.dumps(current))

    return SensorDefinition(
        name=name,
        evaluation_fn=evaluate,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Reports pipelines, contracts and suites that could not be loaded.",
    )
