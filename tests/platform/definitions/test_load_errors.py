"""Invalid files of the catalog, shown in Dagster where they are missing."""

from pathlib import Path

import pytest
from dagster import (
    AssetCheckKey,
    AssetKey,
    DagsterInstance,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile
from tests.platform.definitions.conftest import build_contract

from penstock.platform.control import ControlStore
from penstock.platform.definitions.asset_specs import AssetContext
from penstock.platform.definitions.catalog_definitions import build_catalog_definitions
from penstock.platform.definitions.load_errors import (
    LoadError,
    build_load_error_definitions,
    find_contract_errors,
    find_pipeline_errors,
    find_suite_errors,
)
from penstock.platform.definitions.run_actions import RunActions
from penstock.platform.definitions.streams.catalog_pipelines import list_catalog_pipelines

PROBLEM = "clicks.yaml: The contract has an unknown key 'duration'"
LOAD_ERRORS = (
    *find_contract_errors({"clicks": ValueError(PROBLEM)}),
    *find_suite_errors({"latest/one": ValueError("no YAML"), "latest/nobody": ValueError("no YAML")}),
)
CHECKS = [
    AssetCheckKey(AssetKey(["streams", "two"]), "pipeline_valid"),
    AssetCheckKey(AssetKey(["topics", "clicks"]), "contract_valid"),
    AssetCheckKey(AssetKey(["latest", "one"]), "suite_valid"),
]


@pytest.fixture
def definitions(write: WriteCatalogFile, store: ControlStore, tmp_path: Path):
    """Definitions with an invalid pipeline, an invalid contract and invalid suites."""
    write("one.py", PIPELINE_TEMPLATE.format(name="one"))
    write("two.py", "two = ")
    context = AssetContext("/warehouse", "team:data", Path("/contracts"))
    errors = (*find_pipeline_errors(), *LOAD_ERRORS)
    return build_catalog_definitions(
        [build_contract()],
        tuple(list_catalog_pipelines()),
        context,
        lambda: store,
        RunActions(tmp_path),
        lambda: 0,
        0,
        errors,
    )


def test_an_invalid_file_is_shown_with_its_error(definitions) -> None:
    graph = definitions.resolve_asset_graph()
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert keys == {
        "topics/sensors", "streams/archive-sensors", "raw/sensors", "streams/one", "latest/one",
        "streams/two",
        "topics/clicks", "streams/archive-clicks", "raw/clicks",
    }  # fmt: skip
    stream, topic = (graph.get(AssetKey(path)) for path in (["streams", "two"], ["topics", "clicks"]))
    assert "invalid syntax" in stream.description
    assert topic.description == (f"Invalid contract; the fields of its records are not shown. {PROBLEM}")
    assert (stream.group_name, topic.group_name) == ("streams", "topics")


def test_each_invalid_file_has_a_failing_check_with_the_reason(
    definitions, instance: DagsterInstance
) -> None:
    (checks,) = (
        evaluation for evaluation in definitions.asset_checks if set(CHECKS) & set(evaluation.check_keys)
    )
    assert set(checks.check_keys) == set(CHECKS), "a table without a stream has no asset for a check"
    result = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, asset_selection=[], op_selection=["definition_errors_checks"]
    )
    evaluations = {
        evaluation.asset_check_key: evaluation for evaluation in result.get_asset_check_evaluations()
    }
    assert set(evaluations) == set(CHECKS)
    assert not any(evaluation.passed for evaluation in evaluations.values())
    assert evaluations[CHECKS[1]].metadata["problem"].text == PROBLEM


def test_the_sensor_reports_each_error_once_until_errors_change(instance: DagsterInstance) -> None:
    def tick(cursor: str | None, *errors: LoadError) -> SensorResult | SkipReason:
        (sensor,) = build_load_error_definitions(errors).sensors
        context = build_sensor_context(instance=instance, cursor=cursor)
        return sensor(context)

    clicks, suite, _ = LOAD_ERRORS
    assert isinstance(tick(None), SkipReason)
    first = tick(None, clicks, suite)
    assert [event.asset_check_key for event in first.asset_events] == CHECKS[1:]
    assert isinstance(tick(first.cursor, clicks, suite), SkipReason)
    fixed = tick(first.cursor)
    assert not fixed.asset_events
    assert tick(fixed.cursor, clicks, suite).asset_events, "a repeated error is reported again"
