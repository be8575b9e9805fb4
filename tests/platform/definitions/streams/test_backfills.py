"""Backfills with one partition for each day."""

from datetime import UTC, date, datetime

import pytest
from dagster import AssetKey, DefaultScheduleStatus, RunRequest, SkipReason, build_schedule_context

from penstock.platform.definitions.streams.backfills import build_backfill_definitions
from penstock.platform.services.bounded_runs import BoundedRunResult


def test_a_partition_runs_over_its_day(instance) -> None:
    runs: list[tuple[str, date, int | None]] = []

    def run(stream: str, day: date, records_per_batch: int | None, report: object) -> BoundedRunResult:
        runs.append((stream, day, records_per_batch))
        return BoundedRunResult(stream, day.isoformat(), "/warehouse/runs", {"latest/minute": 3}, {"read": 7})

    defs = build_backfill_definitions({"minute": ["sensors"]}, date(2026, 1, 1), run, (), lambda _: None)
    job = defs.resolve_job_def("backfill_minute")
    assert job.partitions_def.get_first_partition_key() == "2026-01-01"
    config = {"ops": {"backfill_minute_day": {"config": {"records_per_batch": 100}}}}
    result = job.execute_in_process(partition_key="2026-01-02", instance=instance, run_config=config)
    assert result.success
    assert job.execute_in_process(partition_key="2026-01-03", instance=instance).success
    assert runs == [("minute", date(2026, 1, 2), 100), ("minute", date(2026, 1, 3), None)]
    (event, *_) = result.asset_materializations_for_node("backfill_minute_day")
    assert (event.partition, event.metadata["tables"].value) == ("2026-01-02", "/warehouse/runs")
    assert event.metadata["records"].value == 7


def test_the_asset_shows_completed_days_and_its_inputs(instance) -> None:
    def run(stream: str, day: date, records_per_batch: int | None, report: object) -> BoundedRunResult:
        return BoundedRunResult(stream, day.isoformat(), "/warehouse/runs", {}, {"read": 7})

    defs = build_backfill_definitions(
        {"minute": ["sensors", "devices"]}, date(2026, 1, 1), run, (), lambda _: None
    )
    asset = defs.resolve_asset_graph().get(AssetKey(["runs", "minute"]))
    assert asset.parent_keys == {AssetKey(["raw", "sensors"]), AssetKey(["raw", "devices"])}
    assert asset.partitions_def is not None
    for day in ("2026-01-02", "2026-01-05"):
        defs.resolve_job_def("backfill_minute").execute_in_process(partition_key=day, instance=instance)
    assert instance.get_materialized_partitions(asset.key) == {"2026-01-02", "2026-01-05"}


def test_a_day_before_the_first_is_refused(instance) -> None:
    defs = build_backfill_definitions(
        {"minute": ["sensors"]}, date(2026, 1, 1), lambda *_: None, (), lambda _: None
    )
    with pytest.raises(Exception, match="2025-12-31"):
        defs.resolve_job_def("backfill_minute").execute_in_process(
            partition_key="2025-12-31", instance=instance
        )


def test_the_nightly_schedule_runs_the_previous_day() -> None:
    def evaluate_schedule(time: datetime, obstacle: str | None = None) -> RunRequest | SkipReason:
        pipelines = {"minute": ["sensors"], "hour": ["sensors"]}
        defs = build_backfill_definitions(
            pipelines, date(2026, 1, 1), lambda *_: None, ["minute"], lambda _: obstacle
        )
        (schedule,) = defs.schedules
        assert schedule.default_status is DefaultScheduleStatus.RUNNING
        return schedule._execution_fn(build_schedule_context(scheduled_execution_time=time))

    second = datetime(2026, 1, 2, 2, tzinfo=UTC)
    request = evaluate_schedule(second)
    assert (request.partition_key, request.run_key) == ("2026-01-01", "2026-01-01")
    assert evaluate_schedule(second, "sensors has no archive").skip_message == "sensors has no archive"
    assert "before dagster.first_day" in evaluate_schedule(datetime(2026, 1, 1, 2, tzinfo=UTC)).skip_message
