"""Assets and checks of archives."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from dagster import AssetKey, AssetSelection, AssetSpec, Definitions, define_asset_job
from deltalake import write_deltalake

from penstock.engine.archive.archive_rows import ARCHIVE_RECORD_SCHEMA
from penstock.platform.definitions.asset_keys import archive_key
from penstock.platform.definitions.topics.archive_assets import build_archive_checks


def test_an_archive_shows_the_columns_of_its_table(build_small_platform: Callable[..., Definitions]) -> None:
    archive = build_small_platform().resolve_asset_graph().get(AssetKey(["raw", "sensors"]))
    columns = archive.metadata["dagster/column_schema"].value.columns
    assert [column.name for column in columns] == [*ARCHIVE_RECORD_SCHEMA.names, "day"]
    assert all(column.description for column in columns)
    assert archive.metadata["dagster/uri"] == "/warehouse/raw/sensors"


def test_an_archive_is_started_by_the_stream_job(
    build_small_platform: Callable[..., Definitions], instance
) -> None:
    job = build_small_platform().resolve_job_def("stream_start")
    config = {"stream": "archive-sensors", "wait_seconds": 0.0}
    assert job.execute_in_process(run_config=config, instance=instance).success


def test_a_missing_or_damaged_table_fails_only_the_check_of_its_archive(tmp_path: Path, instance) -> None:
    topics = ("lost", "damaged", "none")
    write_deltalake(tmp_path / "ledger/archive-lost", pa.table({"batch_id": [0]}))
    for path in ("ledger/archive-damaged", "raw/damaged"):
        write_deltalake(tmp_path / path, pa.table({"batch_id": [0]}))
    next((tmp_path / "ledger/archive-damaged").glob("*.parquet")).unlink()
    assets = [AssetSpec(archive_key(topic)) for topic in topics]
    defs = Definitions(
        assets=assets,
        asset_checks=[build_archive_checks(topics, tmp_path)],
        jobs=[define_asset_job("check_archives", selection=AssetSelection.all_asset_checks())],
    )
    result = defs.resolve_job_def("check_archives").execute_in_process(instance=instance)
    evaluations = {
        evaluation.asset_key.path[-1]: evaluation for evaluation in result.get_asset_check_evaluations()
    }
    assert {topic: evaluation.passed for topic, evaluation in evaluations.items()} == {
        "lost": False,
        "damaged": False,
        "none": True,
    }
    problem = "the table raw/lost is missing, although the rest of the archive exists"
    assert evaluations["lost"].metadata["problems"].value == [problem]
    assert evaluations["damaged"].description.startswith("could not run: ")
