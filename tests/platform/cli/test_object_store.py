"""Tables in an object store are listed, shown, kept up and checked by the same commands as those in a folder."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.platform.cli.conftest import Run

from penstock.pipelines.archive.names import ledger_path, records_path
from penstock.pipelines.archive.rows import LEDGER
from penstock.pipelines.archive.table import ArchiveTable
from penstock.pipelines.store import Address
from penstock.pipelines.store.files import options
from penstock.pipelines.tables.change import Change
from penstock.pipelines.tables.table import BatchTable
from penstock.platform.definitions.archives import _checked
from penstock.platform.settings import load_settings


@pytest.fixture
def warehouse(bucket: Address, monkeypatch: pytest.MonkeyPatch) -> Address:
    """An empty warehouse in a store, which the settings name."""
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", str(bucket))
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__ENDPOINT", bucket.store.endpoint)
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__REGION", bucket.store.region)
    assert load_settings().settings.tables == bucket
    return bucket


@pytest.fixture
def sensor_table(warehouse: Address) -> Address:
    """A table of three windows, a version each."""
    place = warehouse / "latest" / "sensor_minute"
    for minute in range(3):
        start = datetime(2026, 1, 1, 0, minute, tzinfo=UTC)
        rows = {"device": ["abc"[minute]], "window_start": [start], "temperature": [20.0 + minute / 2]}
        write_deltalake(str(place), pa.table(rows), mode="overwrite", storage_options=options(place))
    return place


def test_tables_are_listed_and_shown(run: Run, sensor_table: Address) -> None:
    assert json.loads(run("table", "list", "--json").out) == [
        {"kind": "latest", "name": "sensor_minute", "address": str(sensor_table)}
    ]
    assert run("table", "show", "sensor_minute").out.splitlines() == [
        "device  window_start         temperature",
        "c       2026-01-01 00:02:00  21.000",
    ]
    answer = run("table", "show", "sensor_hour")
    assert (answer.code, "there are: latest/sensor_minute" in answer.err) == (1, True)


def test_an_empty_warehouse_has_no_tables(run: Run, warehouse: Address) -> None:
    assert json.loads(run("table", "list", "--json").out) == []


def test_maintenance_finds_the_tables(run: Run, sensor_table: Address) -> None:
    answer = run("maintain", "--dry-run")
    assert answer.code == 0, answer.err
    assert "control store" in answer.out


def test_an_archive_is_checked_where_it_is(warehouse: Address) -> None:
    assert "state" in _checked("sensors", warehouse).metadata
    schema = pa.schema(
        [*LEDGER, *(() if "batch_id" in LEDGER.names else (pa.field("batch_id", pa.int64()),))]
    )
    ArchiveTable(warehouse / records_path("sensors"), "archive-sensors")
    ledger = BatchTable(warehouse / ledger_path("sensors"), schema, "archive-sensors")
    row = dict.fromkeys(schema.names)
    row |= {"partition": 0, "start": 0, "end": 2, "gaps": [], "batch_id": 0}
    file = ledger.write_file(pa.Table.from_pylist([row], schema), "batch-0", 0)
    ledger._commit(0, Change([file]), 0)
    found = _checked("sensors", warehouse)
    assert (found.passed, found.metadata["found"].value) == (
        False,
        ["partition 0: 2 records are missing, the first at offset 0"],
    )


def test_a_store_that_does_not_answer_is_told_in_a_sentence(
    run: Run, warehouse: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {one["what"]: one for one in json.loads(run("doctor", "--json").out)}
    assert (found["warehouse"]["ok"], found["warehouse"]["detail"]) == (True, f"0 tables at {warehouse}")
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "s3://no-such-bucket/tables")
    answer = run("table", "list")
    assert answer.code == 1
    assert "s3://no-such-bucket/tables/latest: the object store cannot be asked (" in answer.err
    assert "`penstock doctor` asks it again" in answer.err
