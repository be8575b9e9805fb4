"""Merging and cleaning the table of a running stream keeps its rows, and the stream can still write."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.file_maintenance import (
    FileMergeCounts,
    merge_small_files,
    remove_unreferenced_files,
)
from penstock.engine.tables.latest_table import LatestTable
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.timestamps import TIMESTAMP_TYPE

SCHEMA = pa.schema(
    [
        pa.field("device", pa.string()),
        pa.field("window_start", TIMESTAMP_TYPE),
        pa.field("window_end", TIMESTAMP_TYPE),
        pa.field("n", pa.int64()),
    ]
)
PANES = pa.schema([*SCHEMA, pa.field("kind", pa.string())])
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def make_panes(minute: int, n: int) -> pa.Table:
    row = {"device": "d", "window_start": NOON + minute * MINUTE, "window_end": NOON + (minute + 1) * MINUTE}
    return pa.Table.from_pylist([{**row, "n": n, "kind": "insert"}], schema=PANES)


def read_rows(path: StoragePath) -> list[tuple[datetime, int]]:
    table_rows = open_delta_table(path).to_pyarrow_table().to_pylist()
    return sorted((row["window_start"], row["n"]) for row in table_rows)


def count_files(path: StoragePath) -> int:
    return len(open_delta_table(path).file_uris())


@pytest.fixture
def log(somewhere: StoragePath) -> LogTable:
    table = LogTable(somewhere / "panes", PANES, "s")
    for number in range(20):
        table.commit(number, table.write(make_panes(number, number), number, number), number)
    return table


@pytest.fixture
def latest(somewhere: StoragePath) -> LatestTable:
    table = LatestTable(somewhere / "latest", SCHEMA, "s", ["device"], 60_000_000)
    for number in range(20):
        table.commit(number, table.write(make_panes(number, number), number, number), number)
    return table


def test_a_growing_table_is_merged_and_takes_more_batches(log: LogTable) -> None:
    rows_before = read_rows(log.path)
    assert merge_small_files(log.path, "s", 0) == FileMergeCounts(20, 1)
    assert (read_rows(log.path), count_files(log.path)) == (rows_before, 1)
    log.commit(20, log.write(make_panes(20, 20), 20, 20), 20)
    assert read_rows(log.path) == [*rows_before, (NOON + 20 * MINUTE, 20)]
    assert log.read_last_batch() == 20
    assert merge_small_files(log.path, "s", 0) == FileMergeCounts()


def test_streams_of_a_shared_table_keep_separate_files(log: LogTable) -> None:
    other = LogTable(log.path, PANES, "other")
    other.commit(0, other.write(make_panes(0, 99), 0, 0), 0)
    merge_small_files(log.path, "s", 0)
    names = sorted(Path(uri).name.split("-")[0] for uri in open_delta_table(log.path).file_uris())
    assert names == ["other", "s"]


def test_files_of_open_windows_are_not_merged_and_corrections_reach_merged_files(latest: LatestTable) -> None:
    rows_before = read_rows(latest.path)
    change = latest.write(make_panes(18, 180), 20, 20)
    assert merge_small_files(latest.path, "s", 0, NOON + 15 * MINUTE) == FileMergeCounts(15, 1)
    latest.commit(20, change, 20)
    corrected = [(at, 180 if n == 18 else n) for at, n in rows_before]
    assert (read_rows(latest.path), count_files(latest.path)) == (corrected, 6)
    latest.commit(21, latest.write(make_panes(3, 30), 21, 21), 21)
    assert read_rows(latest.path) == [(at, 30 if n == 3 else n) for at, n in corrected]


def test_unreferenced_files_are_removed_but_not_those_of_a_committed_batch(log: LogTable) -> None:
    merge_small_files(log.path, "s", 0)
    change = log.write(make_panes(20, 20), 20, 20)
    (uncommitted,) = change.adds
    old = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
    hours = 0  # the age of a file in an object store cannot be changed
    if isinstance(log.path, Path):
        hours = 24
        os.utime(log.path / uncommitted.path, (old, old))
    assert len(remove_unreferenced_files(log.path, hours, {uncommitted.path}, dry_run=True)) == 20
    assert len(remove_unreferenced_files(log.path, hours, {uncommitted.path})) == 20
    assert remove_unreferenced_files(log.path, hours, {uncommitted.path}) == []
    assert len(remove_unreferenced_files(log.path, hours, set(), dry_run=True)) == 1
    log.commit(20, change, 20)
    assert len(read_rows(log.path)) == 21
