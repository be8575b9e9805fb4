"""A table that was refreshed before a commit takes each batch once, with concurrent commits in between."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from tests.pipelines.engine.tables.test_latest_table import at, panes, table
from tests.pipelines.engine.tables.test_latest_table import rows as newest

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.file_maintenance import merge_small_files
from penstock.engine.tables.log_table import LogTable

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def log_of(place: StoragePath, application: str = "s") -> LogTable:
    return LogTable(place / "log", SCHEMA, application)


def commit(log: LogTable, number: int, n: int | None = None) -> bool:
    rows = pa.table({"n": [number if n is None else n]}, schema=SCHEMA)
    return log.commit(number, log.write(rows, number, number), number)


def numbers(log: LogTable) -> list[int]:
    return sorted(open_delta_table(log.path).to_pyarrow_table().column("n").to_pylist())


def count_refreshes(log: BatchTable, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the refreshes of a table from now on."""
    found: list[int] = []
    look = log._refresh

    def counted() -> None:
        found.append(len(found))
        look()

    monkeypatch.setattr(log, "_refresh", counted)
    return found


def test_a_commit_after_a_refresh_does_not_refresh_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path)
    assert commit(log, 0)
    log.refresh_ahead()
    counted = count_refreshes(log, monkeypatch)
    assert commit(log, 1)
    assert not counted
    log.refresh_ahead()
    log.refresh_ahead()
    assert len(counted) == 1, "what was looked at since the last commit is not looked at again"
    assert numbers(log) == [0, 1]


def test_a_batch_that_another_host_committed_is_not_committed_again(somewhere: StoragePath) -> None:
    ours, theirs = log_of(somewhere), log_of(somewhere)
    assert commit(ours, 0)
    ours.refresh_ahead()
    assert commit(theirs, 1, n=100)
    assert not commit(ours, 1)
    assert numbers(ours) == [0, 100]
    assert commit(ours, 2)
    assert numbers(ours) == [0, 2, 100]


def test_concurrent_commits_of_another_stream_are_kept(
    somewhere: StoragePath,
) -> None:
    ours, theirs = log_of(somewhere), log_of(somewhere, "another")
    assert commit(ours, 0)
    ours.refresh_ahead()
    assert commit(theirs, 5)
    assert commit(ours, 1)
    assert numbers(ours) == [0, 1, 5]
    assert (ours.read_last_batch(), theirs.read_last_batch()) == (1, 5)


def test_a_concurrent_merge_of_files_does_not_fail_a_commit(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    for number in range(20):
        assert commit(log, number)
    log.refresh_ahead()
    assert merge_small_files(log.path, "s", 20).merged_files == 20
    assert commit(log, 20)
    assert numbers(log) == list(range(21))


def test_after_a_failed_refresh_the_next_commit_refreshes(
    somewhere: StoragePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(somewhere)
    assert commit(log, 0)

    def away(*_: object) -> None:
        raise OSError("the store does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "update_incremental", away)
        with pytest.raises(OSError, match="does not answer"):
            log.refresh_ahead()
    counted = count_refreshes(log, monkeypatch)
    assert commit(log, 1)
    assert len(counted) == 1
    assert numbers(log) == [0, 1]


def test_a_stale_view_does_not_fail_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(tmp_path)
    assert commit(log, 0)
    log.refresh_ahead()
    once, make = [DeltaError("a file of the log that the view was made of is gone")], log._commit

    def made(number: int, change: object, clock: int) -> None:
        if once:
            raise once.pop()
        make(number, change, clock)  # type: ignore[arg-type]

    monkeypatch.setattr(log, "_commit", made)
    assert commit(log, 1)
    assert numbers(log) == [0, 1]


@pytest.mark.parametrize("problem", [DeltaError("the disk is full"), CommitFailedError("somebody else")])
def test_an_error_on_a_refreshed_table_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: DeltaError
) -> None:
    log = log_of(tmp_path)
    assert commit(log, 0)
    log.refresh_ahead()

    def made(*_: object) -> None:
        raise problem

    monkeypatch.setattr(log, "_commit", made)
    with pytest.raises(type(problem), match=str(problem)):
        commit(log, 1)
    assert numbers(log) == [0]


def test_a_table_of_latest_values_is_refreshed_once_for_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = table(tmp_path)
    counted = count_refreshes(latest, monkeypatch)
    for number in range(3):
        rows = panes({("a", 0, 1): number})
        assert latest.commit(number, latest.write(rows, number, number), number)
        latest.refresh_ahead()
    assert len(counted) == 3
    assert newest(latest) == [("a", at(0), at(1), 2)]
