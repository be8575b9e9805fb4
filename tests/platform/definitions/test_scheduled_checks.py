"""The result of a check stays current until its next run, across materializations of its asset."""

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


def run_checks(instance) -> None:
    specs = [AssetCheckSpec(key.name, asset=key.asset_key) for key in KEYS]

    @multi_asset_check(name="checks", specs=specs)
    @report_runless
    def check(context):
        """A description."""
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

    assert check.op.description == "A description."
    definitions = build_scheduled_checks(
        [check], job="check_minute", description="Check", schedule="hourly", cron="0 * * * *"
    )
    defs = Definitions.merge(Definitions(assets=[AssetSpec("minute")]), definitions)
    assert defs.resolve_job_def("check_minute").execute_in_process(instance=instance).success


def read_newest(instance, key: AssetCheckKey):
    return instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_check_result_stays_current_after_a_materialization(instance, key: AssetCheckKey) -> None:
    instance.report_runless_asset_event(AssetMaterialization("minute"))
    run_checks(instance)
    for _ in range(2):
        instance.report_runless_asset_event(AssetMaterialization("minute"))
        record = read_newest(instance, key)
        assert asyncio.run(record.targets_latest_materialization(LoadingContextForTest(instance)))


def test_the_runless_result_equals_that_of_the_run(instance) -> None:
    run_checks(instance)
    (check_run,) = instance.get_runs(RunsFilter(job_name="check_minute"))
    for key in KEYS:
        latest, earlier = instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
        assert (latest.run_id, earlier.run_id) == ("", check_run.run_id)
        runless, original = latest.evaluation, earlier.evaluation
        assert (runless.passed, runless.severity, runless.description, runless.metadata) == (
            original.passed,
            original.severity,
            original.description,
            original.metadata,
        )
    assert read_newest(instance, KEYS[0]).evaluation.metadata["rows"].value == 7
    assert read_newest(instance, KEYS[1]).evaluation.description == "could not run: the table is gone"
