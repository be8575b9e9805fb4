"""Backfills: a partition a day, each a run of its own."""

from datetime import UTC, date, datetime

import pytest
from dagster import AssetKey, DefaultScheduleStatus, RunRequest, SkipReason, build_schedule_context

from penstock.platform.definitions.streams.backfills import build_backfill_definitions
from penstock.platform.services.bounded_runs import BoundedRunResult


def test_a_partition_is_a_run_over_its_day(instance) -> None:
    ran: list[tuple[str, date, int | None]] = []

    def run(stream: str, day: date, most: int | None, tell: object) -> BoundedRunResult:
        ran.append((stream, day, most))
        return BoundedRunResult(stream, day.isoformat(), "/warehouse/runs", {"latest/minute": 3}, {"read": 7})

    defs = build_backfill_definitions({"minute": ["sensors"]}, date(2026, 1, 1), run, (), lambda _: None)
    job = defs.resolve_job_def("backfill_minute")
    assert job.partitions_def.get_first_partition_key() == "2026-01-01"
    config = {"ops": {"backfill_minute_day": {"config": {"records_per_batch": 100}}}}
    result = job.execute_in_process(partition_key="2026-01-02", instance=instance, run_config=config)
    assert result.success
    assert job.execute_in_process(partition_key="2026-01-03", instance=instance).success
    assert ran == [("minute", date(2026, 1, 2), 100), ("minute", date(2026, 1, 3), None)]
    (event, *_) = result.asset_materializations_for_node("backfill_minute_day")
    assert (event.partition, event.metadata["tables"].value) == ("2026-01-02", "/warehouse/runs")
    assert event.metadata["records"].value == 7


def test_the_graph_shows_which_days_were_run_and_from_what(instance) -> None:
    def run(stream: str, day: date, most: int | None, tell: object) -> BoundedRunResult:
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


def test_a_day_before_the_first_is_none(instance) -> None:
    defs = build_backfill_definitions(
        {"minute": ["sensors"]}, date(2026, 1, 1), lambda *_: None, (), lambda _: None
    )
    with pytest.raises(Exception, match="2025-12-31"):
        defs.resolve_job_def("backfill_minute").execute_in_process(
            partition_key="2025-12-31", instance=instance
        )


def test_each_night_the_day_before_is_run_where_that_is_wanted_and_there_is_an_archive() -> None:
    def night(at: datetime, hindered: str | None = None) -> RunRequest | SkipReason:
        pipelines = {"minute": ["sensors"], "hour": ["sensors"]}
        defs = build_backfill_definitions(
            pipelines, date(2026, 1, 1), lambda *_: None, ["minute"], lambda _: hindered
        )
        (schedule,) = defs.schedules
        assert schedule.default_status is DefaultScheduleStatus.RUNNING
        return schedule._execution_fn(build_schedule_context(scheduled_execution_time=at))

    second = datetime(2026, 1, 2, 2, tzinfo=UTC)
    asked = night(second)
    assert (asked.partition_key, asked.run_key) == ("2026-01-01", "2026-01-01")
    assert night(second, "sensors has no archive").skip_message == "sensors has no archive"
    assert "before dagster.first_day" in night(datetime(2026, 1, 1, 2, tzinfo=UTC)).skip_message
