"""Old rows that maintenance removes from the control store."""

import sqlite3
from dataclasses import replace

import pytest
from sqlalchemy import event

from penstock.engine.host.control import BatchRecord, HostReport
from penstock.platform.control import ControlStore
from penstock.platform.maintenance.control_store_rows import prune_batches, prune_hosts


def test_old_batches_are_pruned_except_the_newest_of_each_stream(store: ControlStore) -> None:
    sample = BatchRecord("s", 0, 1, "tick", 0, None, ())
    for number in range(10):
        store.record_batch(replace(sample, batch_id=number, clock_ms=number))
    store.record_batch(replace(sample, stream="silent"))
    assert prune_batches(store, 5, dry_run=True) == 5
    assert prune_batches(store, 5, dry_run=False) == 5
    assert prune_batches(store, 100, dry_run=False) == 4
    assert store.read_last_batch("s").batch_id == 9
    assert store.read_last_batch("silent").batch_id == 0


def test_batches_are_pruned_in_short_transactions(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.platform.maintenance.control_store_rows.ROWS_PER_TRANSACTION", 3)
    sample = BatchRecord("s", 0, 1, "tick", 0, None, ())
    for number in (*range(8), 1_000, 1_001, *range(2_000, 2_020)):
        store.record_batch(replace(sample, batch_id=number, clock_ms=number))
    removed: list[int] = []

    def count_removed(_connection: object, cursor: sqlite3.Cursor, statement: str, *_: object) -> None:
        if statement.startswith("DELETE"):
            removed.append(cursor.rowcount)

    event.listen(store.engine, "after_cursor_execute", count_removed)
    assert prune_batches(store, 1_001, dry_run=True) == 9
    assert prune_batches(store, 1_001, dry_run=False) == 9
    assert removed == [3, 3, 3, 0], "newer rows are not read"


def test_silent_hosts_are_pruned(store: ControlStore) -> None:
    store.report_host(HostReport("old", "127.0.0.1:1", 0, 10))
    store.report_host(HostReport("new", "127.0.0.1:2", 0, 10))
    store.report_host(HostReport("new", "127.0.0.1:2", 0, 30))
    assert prune_hosts(store, 20, dry_run=False) == 1
    assert [host.host for host in store.read_hosts()] == ["new"]
