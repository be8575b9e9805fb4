"""Tables in an object store are listed, shown, kept up and checked by the same commands as those in a folder."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.platform.cli.conftest import Run

from penstock.engine.archive.archive_names import ledger_path, records_path
from penstock.engine.archive.archive_rows import ARCHIVE_LEDGER_SCHEMA
from penstock.engine.archive.archive_table import ArchiveTable
from penstock.engine.storage import ObjectStorePath
from penstock.engine.storage.file_access import delta_storage_options
from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.table_change import TableChange
from penstock.platform.definitions.topics.archive_assets import _archive_result
from penstock.platform.settings import load_settings


@pytest.fixture
def warehouse(bucket: ObjectStorePath, monkeypatch: pytest.MonkeyPatch) -> ObjectStorePath:
    """An empty warehouse in a store, which the settings name."""
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", str(bucket))
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__ENDPOINT", bucket.store_config.endpoint)
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__REGION", bucket.store_config.region)
    assert load_settings().settings.warehouse_path == bucket
    return bucket


@pytest.fixture
def sensor_table(warehouse: ObjectStorePath) -> ObjectStorePath:
    """A table of three windows, a version each."""
    place = warehouse / "latest" / "sensor_minute"
    for minute in range(3):
        start = datetime(2026, 1, 1, 0, minute, tzinfo=UTC)
        rows = {"device": ["abc"[minute]], "window_start": [start], "temperature": [20.0 + minute / 2]}
        write_deltalake(
            str(place), pa.table(rows), mode="overwrite", storage_options=delta_storage_options(place)
        )
    return place


def test_tables_are_listed_and_shown(run: Run, sensor_table: ObjectStorePath) -> None:
    assert json.loads(run("table", "list", "--json").out) == [
        {"kind": "latest", "name": "sensor_minute", "address": str(sensor_table)}
    ]
    assert run("table", "show", "sensor_minute").out.splitlines() == [
        "device  window_start         temperature",
        "c       2026-01-01 00:02:00  21.000",
    ]
    answer = run("table", "show", "sensor_hour")
    assert (answer.code, "known names: sensor_minute" in answer.err) == (2, True)


def test_an_empty_warehouse_has_no_tables(run: Run, warehouse: ObjectStorePath) -> None:
    assert json.loads(run("table", "list", "--json").out) == []


def test_maintenance_finds_the_tables(run: Run, sensor_table: ObjectStorePath) -> None:
    answer = run("maintain", "--dry-run")
    assert answer.code == 0, answer.err
    assert "control store" in answer.out


def test_an_archive_is_checked_where_it_is(warehouse: ObjectStorePath) -> None:
    assert "state" in _archive_result("sensors", warehouse).metadata
    schema = pa.schema(
        [
            *ARCHIVE_LEDGER_SCHEMA,
            *(() if "batch_id" in ARCHIVE_LEDGER_SCHEMA.names else (pa.field("batch_id", pa.int64()),)),
        ]
    )
    ArchiveTable(warehouse / records_path("sensors"), "archive-sensors")
    ledger = BatchTable(warehouse / ledger_path("sensors"), schema, "archive-sensors")
    row = dict.fromkeys(schema.names)
    row |= {"partition": 0, "start": 0, "end": 2, "gaps": [], "batch_id": 0}
    file = ledger.write_file(pa.Table.from_pylist([row], schema), "batch-0", 0)
    ledger._commit(0, TableChange([file]), 0)
    found = _archive_result("sensors", warehouse)
    assert (found.passed, found.metadata["problems"].value) == (
        False,
        ["partition 0: 2 records are missing, the first at offset 0"],
    )


def test_a_store_that_does_not_answer_is_told_in_a_sentence(
    run: Run, warehouse: ObjectStorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {one["check"]: one for one in json.loads(run("doctor", "--json").out)}
    assert (found["warehouse"]["ok"], found["warehouse"]["detail"]) == (True, f"0 tables at {warehouse}")
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "s3://no-such-bucket/tables")
    answer = run("table", "list")
    assert answer.code == 1
    assert "s3://no-such-bucket/tables/latest: the object store does not answer (" in answer.err
    assert "`penstock doctor` tests the connection" in answer.err
