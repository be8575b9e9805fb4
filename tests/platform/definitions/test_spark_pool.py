"""Runs that start a Spark session share a pool; others do not wait."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, JobDefinition
from dagster._core.op_concurrency_limits_counter import GlobalOpConcurrencyLimitsCounter

from penstock.platform.definitions.asset_keys import SPARK_POOL
from penstock.platform.settings import load_settings
from penstock.platform.stack.dagster_home import dagster_home, write_dagster_home

SPARK_JOBS = {"stream_replay", "stream_upgrade", "backfill_sensor_minute", "audit_streams", "check_tables"}


@pytest.fixture
def configured_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstance]:
    """An instance with the configuration of the stack."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    settings = load_settings().settings
    write_dagster_home(settings)
    with DagsterInstance.from_config(str(dagster_home(settings))) as instance:
        instance.event_log_storage.initialize_concurrency_limit_to_default(SPARK_POOL)
        yield instance


def load_job(name: str) -> JobDefinition:
    from penstock.platform.definitions.location import defs

    return defs.resolve_job_def(name)


def test_jobs_that_start_spark_are_in_the_spark_pool() -> None:
    pools = {
        name: {node.definition.pool for node in load_job(name).nodes}
        for name in (*SPARK_JOBS, "stream_start", "maintenance")
    }
    assert {name for name, pool_names in pools.items() if SPARK_POOL in pool_names} == SPARK_JOBS


def test_two_spark_jobs_run_and_the_next_waits(configured_instance: DagsterInstance) -> None:
    first, third, other = (
        configured_instance.create_run_for_job(load_job(name))
        for name in ("check_tables", "check_tables", "maintenance")
    )
    assert not is_blocked(configured_instance, first)
    for _ in range(2):
        configured_instance.create_run_for_job(load_job("audit_streams"), status=DagsterRunStatus.STARTED)
    assert is_blocked(configured_instance, third)
    assert not is_blocked(configured_instance, other)


def is_blocked(instance: DagsterInstance, run: DagsterRun) -> bool:
    """Whether the queue of Dagster's daemon holds a run back."""
    config = instance.get_concurrency_config()
    counter = GlobalOpConcurrencyLimitsCounter(
        instance,
        [run],
        instance.get_run_records(),
        concurrency_keys=instance.event_log_storage.get_concurrency_keys(),
        pool_limits=instance.event_log_storage.get_pool_limits(),
        pool_granularity=config.pool_config.pool_granularity,
    )
    return counter.is_blocked(run)
