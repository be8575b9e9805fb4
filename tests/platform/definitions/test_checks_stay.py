"""What came of a check is shown until it is made again, however often its asset is materialized meanwhile."""

import asyncio

import pytest
from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetMaterialization,
    AssetSpec,
    Definitions,
    multi_asset_check,
)
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.dagster_run import RunsFilter

from penstock.platform.definitions.scheduled_checks import build_scheduled_checks, report_runless, run_guarded

KEYS = [AssetCheckKey(AssetSpec("minute").key, name) for name in ("steady", "whole")]


def run(instance) -> None:
    specs = [AssetCheckSpec(key.name, asset=key.asset_key) for key in KEYS]

    @multi_asset_check(name="checks", specs=specs)
    @report_runless
    def check(context):
        """What is looked for."""
        for key in sorted(context.selected_asset_check_keys):
            yield run_guarded(key, lambda key=key: result(key))

    def result(key: AssetCheckKey) -> AssetCheckResult:
        if key.name == "whole":
            raise OSError("the table is gone")
        return AssetCheckResult(
            passed=False,
            asset_key=key.asset_key,
            check_name=key.name,
            severity=AssetCheckSeverity.WARN,
            description="twice as many as an hour before",
            metadata={"rows": 7},
        )

    assert check.op.description == "What is looked for."
    made = build_scheduled_checks(
        [check], job="look", description="Look", schedule="hourly", cron="0 * * * *"
    )
    defs = Definitions.merge(Definitions(assets=[AssetSpec("minute")]), made)
    assert defs.resolve_job_def("look").execute_in_process(instance=instance).success


def newest(instance, key: AssetCheckKey):
    return instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_what_came_of_a_check_is_current_after_a_stream_has_materialized_its_table(
    instance, key: AssetCheckKey
) -> None:
    instance.report_runless_asset_event(AssetMaterialization("minute"))
    run(instance)
    for _ in range(2):
        instance.report_runless_asset_event(AssetMaterialization("minute"))
        record = newest(instance, key)
        assert asyncio.run(record.targets_latest_materialization(LoadingContextForTest(instance)))


def test_what_is_told_of_no_run_is_what_the_run_told(instance) -> None:
    run(instance)
    (made,) = instance.get_runs(RunsFilter(job_name="look"))
    for key in KEYS:
        latest, before = instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
        assert (latest.run_id, before.run_id) == ("", made.run_id)
        told, said = latest.evaluation, before.evaluation
        assert (told.passed, told.severity, told.description, told.metadata) == (
            said.passed,
            said.severity,
            said.description,
            said.metadata,
        )
    assert newest(instance, KEYS[0]).evaluation.metadata["rows"].value == 7
    assert newest(instance, KEYS[1]).evaluation.description == "could not run: the table is gone"
