"""The check that every definition file is valid now, also those that changed after Dagster loaded the definitions.

Dagster shows the definitions that it loaded. Hosts and commands read the files, so a file that became invalid since
then would stop the next start of a stream while Dagster shows no fault.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetKey,
    AssetSpec,
    DefaultSensorStatus,
    Definitions,
    MetadataValue,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from penstock.core.clock import now_ms
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.scheduled_checks import build_checks, to_evaluation
from penstock.platform.services.alerts import Alert, AlertHandler
from penstock.platform.services.definition_files import fingerprint_definition_folders
from penstock.platform.services.definition_problems import DefinitionProblem, read_current_problems

FILES_KEY = AssetKey(["definitions", "files"])
CHECK_NAME = "definition_files_valid"
SENSOR_INTERVAL_S = 60
REPEAT_INTERVAL_MS = 300_000
"""How often files are checked that look unchanged: modules outside of the catalog folders are not polled."""

ProblemReader = Callable[[], Sequence[DefinitionProblem]]


class CheckedFiles(msgspec.Struct, frozen=True):
    """The cursor of the sensor: which files it checked, when, and whether all were valid."""

    fingerprint: str = ""
    at_ms: int = 0
    is_valid: bool = True


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the asset, its check and the sensor that reports it."""
    return build_file_definitions(read_current_problems, context.alerts)


def build_file_definitions(read_problems: ProblemReader, raise_alert: AlertHandler) -> Definitions:
    """Build the definitions; `read_problems` returns the problems of the current files."""
    asset = AssetSpec(
        FILES_KEY,
        description="The files of contracts, pipelines and suites, as they are now.",
        group_name="definitions",
        kinds={"yaml", "python"},
    )
    spec = AssetCheckSpec(
        CHECK_NAME, asset=FILES_KEY, description="Every contract, pipeline and suite can be loaded."
    )
    checks = build_checks(
        "definition_files", [spec], lambda _context, _key: build_files_result(read_problems())
    )
    return Definitions(
        assets=[asset], asset_checks=[checks], sensors=[_build_sensor(read_problems, raise_alert)]
    )


def build_files_result(problems: Iterable[DefinitionProblem]) -> AssetCheckResult:
    """Return the result of the check: it fails with each problem."""
    messages = [problem.message for problem in problems]
    text = "\n".join(f"- {line}" for message in messages for line in message.splitlines())
    state = f"{len(messages)} invalid" if messages else "all files are valid"
    return AssetCheckResult(
        passed=not messages,
        asset_key=FILES_KEY,
        check_name=CHECK_NAME,
        severity=AssetCheckSeverity.ERROR,
        metadata={"state": state, **({"problems": MetadataValue.md(text)} if messages else {})},
    )


def evaluate_files(
    context: SensorEvaluationContext, read_problems: ProblemReader, raise_alert: AlertHandler
) -> SensorResult | SkipReason:
    """Run one tick of the sensor: check files that changed, and all of them every five minutes."""
    previous = msgspec.json.decode(context.cursor or "{}", type=CheckedFiles)
    fingerprint, now = fingerprint_definition_folders(), now_ms()
    if fingerprint == previous.fingerprint and now - previous.at_ms < REPEAT_INTERVAL_MS:
        return SkipReason("No definition file changed")
    problems = read_problems()
    if bool(problems) == previous.is_valid:
        state, reason = ("invalid", problems[0].message) if problems else ("valid", "")
        raise_alert(Alert("definition files", state, reason, now))
    cursor = msgspec.json.encode(CheckedFiles(fingerprint, now, not problems)).decode()
    return SensorResult(asset_events=[to_evaluation(build_files_result(problems))], cursor=cursor)


def _build_sensor(read_problems: ProblemReader, raise_alert: AlertHandler) -> SensorDefinition:
    return SensorDefinition(
        name="definition_files",
        evaluation_fn=lambda context: evaluate_files(context, read_problems, raise_alert),
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Checks contracts, pipelines and suites that changed since Dagster loaded them.",
    )
