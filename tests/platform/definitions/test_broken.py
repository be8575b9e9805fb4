"""Files that cannot be used, in Dagster: each is told of where it is missed, and all else is as it was."""

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
from tests.platform.definitions.conftest import contract

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
from penstock.platform.definitions.streams.catalog_pipelines import list_catalog_pipelines

PROBLEM = "clicks.yaml: The contract has an unknown key 'duration'"
MISSED = (
    *find_contract_errors({"clicks": ValueError(PROBLEM)}),
    *find_suite_errors({"latest/one": ValueError("no YAML"), "latest/nobody": ValueError("no YAML")}),
)
CHECKS = [
    AssetCheckKey(AssetKey(["streams", "two"]), "pipeline_valid"),
    AssetCheckKey(AssetKey(["topics", "clicks"]), "contract_valid"),
    AssetCheckKey(AssetKey(["latest", "one"]), "suite_valid"),
]


@pytest.fixture
def made(write: WriteCatalogFile, store: ControlStore):
    """Two pipelines, one of them broken; two topics, of one of which the contract is; suites that are."""
    write("one.py", PIPELINE_TEMPLATE.format(name="one"))
    write("two.py", "two = ")
    around = AssetContext("/warehouse", "team:data", Path("/contracts"))
    broken = (*find_pipeline_errors(), *MISSED)
    return build_catalog_definitions(
        [contract()], tuple(list_catalog_pipelines()), around, lambda: store, lambda: 0, 0, broken
    )


def test_what_cannot_be_used_is_shown_as_that_and_the_others_as_they_are(made) -> None:
    graph = made.resolve_asset_graph()
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


def test_each_has_a_check_that_fails_and_says_why(made, instance: DagsterInstance) -> None:
    (checks,) = (one for one in made.asset_checks if set(CHECKS) & set(one.check_keys))
    assert set(checks.check_keys) == set(CHECKS), "a table that nobody writes has nothing to hang a check on"
    done = made.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, asset_selection=[], op_selection=["files"]
    )
    told = {one.asset_check_key: one for one in done.get_asset_check_evaluations()}
    assert set(told) == set(CHECKS)
    assert not any(one.passed for one in told.values())
    assert told[CHECKS[1]].metadata["problem"].text == PROBLEM


def test_the_sensor_tells_of_each_once_until_something_else_is_wrong(instance: DagsterInstance) -> None:
    def tick(cursor: str | None, *broken: LoadError) -> SensorResult | SkipReason:
        (sensor,) = build_load_error_definitions(broken).sensors
        context = build_sensor_context(instance=instance, cursor=cursor)
        return sensor(context)

    clicks, one, _ = MISSED
    assert isinstance(tick(None), SkipReason)
    first = tick(None, clicks, one)
    assert [event.asset_check_key for event in first.asset_events] == CHECKS[1:]
    assert isinstance(tick(first.cursor, clicks, one), SkipReason)
    mended = tick(first.cursor)
    assert not mended.asset_events
    assert tick(mended.cursor, clicks, one).asset_events, "broken again, it is told of again"
