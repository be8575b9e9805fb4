"""A table that was refreshed before a commit takes each batch once, with concurrent commits in between."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from tests.pipelines.engine.tables.test_latest_table import make_panes, make_table, to_time
from tests.pipelines.engine.tables.test_latest_table import read_rows as read_latest

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.file_maintenance import merge_small_files
from penstock.engine.tables.log_table import LogTable

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def open_log(root: StoragePath, application: str = "s") -> LogTable:
    return LogTable(root / "log", SCHEMA, application)


def commit(log: LogTable, number: int, n: int | None = None) -> bool:
    rows = pa.table({"n": [number if n is None else n]}, schema=SCHEMA)
    return log.commit(number, log.write(rows, number, number), number)


def read_numbers(log: LogTable) -> list[int]:
    return sorted(open_delta_table(log.path).to_pyarrow_table().column("n").to_pylist())


def count_refreshes(log: BatchTable, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the refreshes of a table from now on."""
    refreshes: list[int] = []
    refresh = log._refresh

    def count_refresh() -> None:
        refreshes.append(len(refreshes))
        refresh()

    monkeypatch.setattr(log, "_refresh", count_refresh)
    return refreshes


def test_a_commit_after_a_refresh_does_not_refresh_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    assert commit(log, 0)
    log.refresh_ahead()
    refreshes = count_refreshes(log, monkeypatch)
    assert commit(log, 1)
    assert not refreshes
    log.refresh_ahead()
    log.refresh_ahead()
    assert len(refreshes) == 1, "a second call without a commit in between does not refresh"
    assert read_numbers(log) == [0, 1]


def test_a_batch_that_another_host_committed_is_not_committed_again(somewhere: StoragePath) -> None:
    own_log, other_log = open_log(somewhere), open_log(somewhere)
    assert commit(own_log, 0)
    own_log.refresh_ahead()
    assert commit(other_log, 1, n=100)
    assert not commit(own_log, 1)
    assert read_numbers(own_log) == [0, 100]
    assert commit(own_log, 2)
    assert read_numbers(own_log) == [0, 2, 100]


def test_concurrent_commits_of_another_stream_are_kept(
    somewhere: StoragePath,
) -> None:
    own_log, other_log = open_log(somewhere), open_log(somewhere, "another")
    assert commit(own_log, 0)
    own_log.refresh_ahead()
    assert commit(other_log, 5)
    assert commit(own_log, 1)
    assert read_numbers(own_log) == [0, 1, 5]
    assert (own_log.read_last_batch(), other_log.read_last_batch()) == (1, 5)


def test_a_concurrent_merge_of_files_does_not_fail_a_commit(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(20):
        assert commit(log, number)
    log.refresh_ahead()
    assert merge_small_files(log.path, "s", 20).merged_files == 20
    assert commit(log, 20)
    assert read_numbers(log) == list(range(21))


def test_after_a_failed_refresh_the_next_commit_refreshes(
    somewhere: StoragePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(somewhere)
    assert commit(log, 0)

    def raise_error(*_: object) -> None:
        raise OSError("the store is unreachable")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "update_incremental", raise_error)
        with pytest.raises(OSError, match="is unreachable"):
            log.refresh_ahead()
    refreshes = count_refreshes(log, monkeypatch)
    assert commit(log, 1)
    assert len(refreshes) == 1
    assert read_numbers(log) == [0, 1]


def test_a_stale_view_does_not_fail_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    assert commit(log, 0)
    log.refresh_ahead()
    errors, commit_change = [DeltaError("a file of the log that the view was made of is gone")], log._commit

    def fail_once(number: int, change: object, clock: int) -> None:
        if errors:
            raise errors.pop()
        commit_change(number, change, clock)  # type: ignore[arg-type]

    monkeypatch.setattr(log, "_commit", fail_once)
    assert commit(log, 1)
    assert read_numbers(log) == [0, 1]


@pytest.mark.parametrize(
    "problem", [DeltaError("the disk is full"), CommitFailedError("a concurrent commit")]
)
def test_an_error_on_a_refreshed_table_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: DeltaError
) -> None:
    log = open_log(tmp_path)
    assert commit(log, 0)
    log.refresh_ahead()

    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr(log, "_commit", fail)
    with pytest.raises(type(problem), match=str(problem)):
        commit(log, 1)
    assert read_numbers(log) == [0]


def test_a_table_of_latest_values_is_refreshed_once_for_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = make_table(tmp_path)
    refreshes = count_refreshes(latest, monkeypatch)
    for number in range(3):
        panes = make_panes({("a", 0, 1): number})
        assert latest.commit(number, latest.write(panes, number, number), number)
        latest.refresh_ahead()
    assert len(refreshes) == 3
    assert read_latest(latest) == [("a", to_time(0), to_time(1), 2)]
