"""Expectations in Dagster: a check for each expectation of a table or topic; only final windows are checked."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetKey,
    DefaultSensorStatus,
    Definitions,
    MetadataValue,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
)

from penstock.platform.definitions.asset_keys import SPARK_POOL
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.scheduled_checks import (
    build_checks,
    build_joint_checks,
    build_scheduled_checks,
    failed_result,
)
from penstock.platform.definitions.tables.check_cursor import REPORTED_UNTIL_KEY, read_reported_until
from penstock.platform.definitions.tables.check_services import (
    CheckServices,
    create_check_services,
    file_link,
    page_link,
)
from penstock.platform.definitions.unchecked_assets import build_unchecked_result
from penstock.platform.services.expectations import list_checked_suites
from penstock.quality.expectations.check_results import BatchCheckResult, ExpectationResult
from penstock.quality.expectations.suite import Expectation, Suite

CHECK_TABLES_JOB = "check_tables"
NIGHTLY_CRON = "30 3 * * *"
SENSOR_INTERVAL_S = 300
NO_FINAL_WINDOW_REASON = "no window became final since the expectation exists"
HOUR_MS = 3_600_000


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the checks of every valid suite."""
    return build_expectation_definitions(list_checked_suites(), create_check_services(context.settings))


def build_expectation_definitions(suites: Sequence[Suite], services: CheckServices) -> Definitions:
    """Build a check for each expectation, the job that runs those of tables, its schedule and its sensor."""
    tables = [suite for suite in suites if suite.topic is None]
    topics = [suite for suite in suites if suite.topic is not None]
    checks = [_build_table_checks(tables, services)] if tables else []
    checks += [_build_topic_checks(topics, services)] if topics else []
    scheduled_definitions = build_scheduled_checks(
        checks,
        job=CHECK_TABLES_JOB,
        description="Check the expectations of tables in the windows that became final since the last check.",
        schedule="nightly_checks",
        cron=NIGHTLY_CRON,
    )
    return Definitions.merge(scheduled_definitions, Definitions(sensors=[_build_sensor(services)]))


def suite_asset_key(suite: Suite) -> AssetKey:
    """Return the asset key of a suite's subject."""
    return AssetKey(suite.subject.split("/"))


def _build_specs(suites: Sequence[Suite]) -> list[AssetCheckSpec]:
    return [
        AssetCheckSpec(
            expectation.name, asset=suite_asset_key(suite), description=_describe_expectation(expectation)
        )
        for suite in suites
        for expectation in suite.expectations
    ]


def _describe_expectation(expectation: Expectation) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in expectation.kwargs.items())
    return f"{expectation.type}({arguments}). {expectation.why}"


def _build_table_checks(suites: Sequence[Suite], services: CheckServices) -> AssetChecksDefinition:
    def run_selected(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        keys = sorted(context.selected_asset_check_keys)
        subjects = list(dict.fromkeys("/".join(key.asset_key.path) for key in keys))
        outcomes = services.check_tables(subjects)
        for subject in subjects:
            outcome = outcomes.get(subject)
            for key in (key for key in keys if "/".join(key.asset_key.path) == subject):
                reported_until = read_reported_until(context.instance, key)
                if isinstance(outcome, Exception):
                    yield failed_result(key, outcome, {REPORTED_UNTIL_KEY: reported_until})
                elif result := _table_result(
                    key, services.results_since(subject, reported_until), services
                ) or build_unchecked_result(context.instance, key, NO_FINAL_WINDOW_REASON):
                    yield result

    return build_joint_checks("expectations_of_tables", _build_specs(suites), run_selected, SPARK_POOL)


def _table_result(
    key: AssetCheckKey, outcomes: Sequence[BatchCheckResult], services: CheckServices
) -> AssetCheckResult | None:
    """Return the result of an expectation in all batches of a table; None if no batch was checked for it."""
    results = [
        (outcome, result) for outcome in outcomes for result in outcome.results if result.name == key.name
    ]
    if not results:
        return None
    unmet = [pair for pair in results if not pair[1].passed]
    metadata = _result_metadata(*(unmet or results)[-1], services)
    metadata |= {REPORTED_UNTIL_KEY: max(outcome.at_ms for outcome in outcomes)}
    metadata |= {"batches_failed": len(unmet), "batches": len(results)} if len(results) > 1 else {}
    return AssetCheckResult(
        passed=not unmet,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR,
        metadata={**metadata, **page_link(services, key)},
    )


def _result_metadata(
    outcome: BatchCheckResult, result: ExpectationResult, services: CheckServices
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "batch": outcome.batch.label,
        "checked_rows": result.checked,
        "unexpected_rows": result.unexpected,
    }
    metadata |= {
        "observed": None if result.observed is None else str(result.observed),
        "problem": result.problem,
    }
    if result.examples:
        metadata["examples"] = MetadataValue.json(list(result.examples))
    if result.rows is not None:
        metadata |= file_link(services, "rows", Path(result.rows))
    return {name: value for name, value in metadata.items() if value is not None}


def _build_topic_checks(suites: Sequence[Suite], services: CheckServices) -> AssetChecksDefinition:
    expectations_by_key = {
        (suite.topic, expectation.name): expectation for suite in suites for expectation in suite.expectations
    }

    def check_topic(_context: AssetCheckExecutionContext, key: AssetCheckKey) -> AssetCheckResult:
        return _topic_result(key, expectations_by_key[key.asset_key.path[-1], key.name], services)

    return build_checks("expectations_of_topics", _build_specs(suites), check_topic)


def _topic_result(key: AssetCheckKey, expectation: Expectation, services: CheckServices) -> AssetCheckResult:
    topic = key.asset_key.path[-1]
    count = services.count_broken(topic).get(key.name, 0)
    return AssetCheckResult(
        passed=count == 0,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR if expectation.action == "stop" else AssetCheckSeverity.WARN,
        metadata={
            "records_of_a_day": count,
            "action": str(expectation.action),
            "examples": MetadataValue.json(list(services.find_examples(topic, expectation)) if count else []),
            **page_link(services, key),
            "command": _inspect_command(topic, expectation),
        },
    )


def _inspect_command(topic: str, expectation: Expectation) -> str:
    """Return the command that shows the quarantined records, or the batches with failed records."""
    if expectation.action == "quarantine":
        return f"penstock quarantine list {topic} --reason check:{expectation.name}"
    return "penstock table show STREAM --kind checks"


def _build_sensor(services: CheckServices) -> SensorDefinition:
    def evaluate(context: SensorEvaluationContext) -> RunRequest | SkipReason:
        due = dict(services.list_due())
        if not due:
            return SkipReason("No window became final since the last check")
        hour = str(services.now_ms() // HOUR_MS)
        if context.cursor == hour:
            return SkipReason("Tables were already checked in this hour")
        context.update_cursor(hour)
        return RunRequest(run_key=f"{CHECK_TABLES_JOB}-{hour}")

    return SensorDefinition(
        name="final_windows",
        evaluation_fn=evaluate,
        job_name=CHECK_TABLES_JOB,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Checks tables after windows became final, at most once an hour.",
    )
