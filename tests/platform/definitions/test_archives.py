"""What Dagster shows of archives."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from dagster import AssetKey, AssetSelection, AssetSpec, Definitions, define_asset_job
from deltalake import write_deltalake

from penstock.engine.archive.archive_rows import ARCHIVE_RECORD_SCHEMA
from penstock.platform.definitions.asset_keys import archive_key
from penstock.platform.definitions.topics.archive_assets import build_archive_checks


def test_an_archives_columns_are_those_that_it_writes(make: Callable[..., Definitions]) -> None:
    archive = make().resolve_asset_graph().get(AssetKey(["raw", "sensors"]))
    columns = archive.metadata["dagster/column_schema"].value.columns
    assert [column.name for column in columns] == [*ARCHIVE_RECORD_SCHEMA.names, "day"]
    assert all(column.description for column in columns)
    assert archive.metadata["dagster/uri"] == "/warehouse/raw/sensors"


def test_an_archive_can_be_started_by_the_stream_jobs(make: Callable[..., Definitions], instance) -> None:
    job = make().resolve_job_def("stream_start")
    config = {"stream": "archive-sensors", "wait_seconds": 0.0}
    assert job.execute_in_process(run_config=config, instance=instance).success


def test_an_archive_of_which_a_table_is_gone_or_damaged_fails_its_own_check_only(
    tmp_path: Path, instance
) -> None:
    topics = ("lost", "damaged", "none")
    write_deltalake(tmp_path / "ledger/archive-lost", pa.table({"batch_id": [0]}))
    for path in ("ledger/archive-damaged", "raw/damaged"):
        write_deltalake(tmp_path / path, pa.table({"batch_id": [0]}))
    next((tmp_path / "ledger/archive-damaged").glob("*.parquet")).unlink()
    assets = [AssetSpec(archive_key(topic)) for topic in topics]
    defs = Definitions(
        assets=assets,
        asset_checks=[build_archive_checks(topics, tmp_path)],
        jobs=[define_asset_job("look", selection=AssetSelection.all_asset_checks())],
    )
    done = defs.resolve_job_def("look").execute_in_process(instance=instance)
    found = {one.asset_key.path[-1]: one for one in done.get_asset_check_evaluations()}
    assert {topic: one.passed for topic, one in found.items()} == {
        "lost": False,
        "damaged": False,
        "none": True,
    }
    said = "the table raw/lost is missing, although the rest of the archive exists"
    assert found["lost"].metadata["problems"].value == [said]
    assert found["damaged"].description.startswith("could not run: ")
