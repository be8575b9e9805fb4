"""Commands for tables in an object store."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.platform.cli.conftest import RunCommand

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
    """An empty warehouse in an object store, set by variables."""
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", str(bucket))
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__ENDPOINT", bucket.store_config.endpoint)
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__REGION", bucket.store_config.region)
    assert load_settings().settings.warehouse_path == bucket
    return bucket


@pytest.fixture
def sensor_table(warehouse: ObjectStorePath) -> ObjectStorePath:
    """A table with three versions, each of one window."""
    path = warehouse / "latest" / "sensor_minute"
    for minute in range(3):
        start = datetime(2026, 1, 1, 0, minute, tzinfo=UTC)
        rows = {"device": ["abc"[minute]], "window_start": [start], "temperature": [20.0 + minute / 2]}
        write_deltalake(
            str(path), pa.table(rows), mode="overwrite", storage_options=delta_storage_options(path)
        )
    return path


def test_tables_are_listed_and_shown(run: RunCommand, sensor_table: ObjectStorePath) -> None:
    assert json.loads(run("table", "list", "--json").out) == [
        {"kind": "latest", "name": "sensor_minute", "address": str(sensor_table)}
    ]
    assert run("table", "show", "sensor_minute").out.splitlines() == [
        "device  window_start         temperature",
        "c       2026-01-01 00:02:00       21.000",
    ]
    result = run("table", "show", "sensor_hour")
    assert (result.code, "known names: sensor_minute" in result.err) == (2, True)


def test_an_empty_warehouse_has_no_tables(run: RunCommand, warehouse: ObjectStorePath) -> None:
    assert json.loads(run("table", "list", "--json").out) == []


def test_maintenance_finds_the_tables(run: RunCommand, sensor_table: ObjectStorePath) -> None:
    result = run("maintain", "--dry-run")
    assert result.code == 0, result.err
    assert "control store" in result.out


def test_an_archive_in_an_object_store_is_checked(warehouse: ObjectStorePath) -> None:
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
    archive_result = _archive_result("sensors", warehouse)
    assert (archive_result.passed, archive_result.metadata["problems"].value) == (
        False,
        ["partition 0: 2 records are missing, the first at offset 0"],
    )


def test_an_unavailable_store_is_reported_in_one_line(
    run: RunCommand, warehouse: ObjectStorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_result = {finding["check"]: finding for finding in json.loads(run("doctor", "--json").out)}
    assert (archive_result["warehouse"]["ok"], archive_result["warehouse"]["detail"]) == (
        True,
        f"0 tables at {warehouse}",
    )
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "s3://no-such-bucket/tables")
    result = run("table", "list")
    assert result.code == 1
    assert "s3://no-such-bucket/tables: the object store does not answer (" in result.err
    assert "`penstock doctor` tests the connection" in result.err
