"""Runs that start a Spark of their own wait for each other; all others do not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, JobDefinition
from dagster._core.op_concurrency_limits_counter import GlobalOpConcurrencyLimitsCounter

from penstock.platform.definitions.asset_keys import SPARK_POOL
from penstock.platform.settings import load_settings
from penstock.platform.stack.dagster_home import dagster_home, write_dagster_home

HEAVY = {"stream_replay", "stream_upgrade", "backfill_sensor_minute", "audit_streams", "check_tables"}


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstance]:
    """An instance as the stack writes it."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    settings = load_settings().settings
    write_dagster_home(settings)
    with DagsterInstance.from_config(str(dagster_home(settings))) as instance:
        instance.event_log_storage.initialize_concurrency_limit_to_default(SPARK_POOL)
        yield instance


def job(name: str) -> JobDefinition:
    from penstock.platform.definitions.location import defs

    return defs.resolve_job_def(name)


def test_replays_backfills_audits_and_checks_are_in_the_pool_of_spark_and_steering_is_not() -> None:
    pools = {
        name: {node.definition.pool for node in job(name).nodes}
        for name in (*HEAVY, "stream_start", "maintenance")
    }
    assert {name for name, found in pools.items() if SPARK_POOL in found} == HEAVY


def test_two_of_them_run_at_once_and_the_next_waits(configured: DagsterInstance) -> None:
    first, third, other = (
        configured.create_run_for_job(job(name)) for name in ("check_tables", "check_tables", "maintenance")
    )
    assert not blocked(configured, first)
    for _ in range(2):
        configured.create_run_for_job(job("audit_streams"), status=DagsterRunStatus.STARTED)
    assert blocked(configured, third)
    assert not blocked(configured, other)


def blocked(instance: DagsterInstance, run: DagsterRun) -> bool:
    """What the queue of Dagster's daemon decides of a run."""
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
