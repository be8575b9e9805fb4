"""What Dagster shows of archives."""

from collections.abc import Callable

from dagster import AssetKey, Definitions

from penstock.pipelines.archive.rows import RECORD


def test_an_archives_columns_are_those_that_it_writes(make: Callable[..., Definitions]) -> None:
    archive = make().resolve_asset_graph().get(AssetKey(["raw", "sensors"]))
    columns = archive.metadata["dagster/column_schema"].value.columns
    assert [column.name for column in columns] == [*RECORD.names, "day"]
    assert all(column.description for column in columns)
    assert archive.metadata["dagster/uri"] == "/warehouse/raw/sensors"


def test_an_archive_can_be_started_by_the_stream_jobs(make: Callable[..., Definitions], instance) -> None:
    job = make().resolve_job_def("stream_start")
    config = {"stream": "archive-sensors", "wait_seconds": 0.0}
    assert job.execute_in_process(run_config=config, instance=instance).success
