"""Tables, journals and decisions that are not as streams write them: each is found, and every check is made."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stored import Bench
from tests.pipelines.engine.batch.test_crashes import TABLES
from tests.quality.audit.test_books import ORDER, edited, lived, made, rewrite, scope_of
from tests.quality.audit.test_results import OF, rows

from penstock.quality.audit.ledger_checks import STREAM_CHECKS
from penstock.quality.audit.result_comparison import compare_results
from penstock.quality.audit.runner import run_check as made_of
from penstock.quality.audit.side_tables import check_side_table
from penstock.quality.audit.verdict import AuditVerdict


def found(bench: Bench) -> dict[str, AuditVerdict]:
    """What became of each check that is not right."""
    scope = scope_of(bench)
    verdicts = (made(scope, name, check) for name, check in STREAM_CHECKS)
    return {verdict.check: verdict for verdict in verdicts if verdict.state != "passed"}


def said(bench: Bench) -> dict[str, str]:
    """What is said to be wrong, by the check that says it."""
    return {name: one.summary for name, one in found(bench).items() if one.state == "failed"}


def log_of(bench: Bench, table: str) -> list[Path]:
    return sorted((bench.folder / "warehouse" / table / "_delta_log").glob("*.json"))


NEWEST = {"late/stream": 4, "quarantine/records": 2}
"""The batches that wrote to some tables alone."""


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_lost_its_newest_commit_is_found_by_what_the_journal_says(
    tmp_path: Path, table: str
) -> None:
    bench = lived(tmp_path)
    log_of(bench, table)[-1].unlink()
    batch = NEWEST.get(table, 4)
    told = said(bench)["files"]
    assert told.startswith(f"{table}: stream committed batch {batch} to it, but it")


@pytest.mark.parametrize(("gone", "version"), [(0, 0), (2, 2)])
def test_a_table_whose_log_has_a_gap_is_found_by_the_version_that_it_lacks(
    tmp_path: Path, gone: int, version: int
) -> None:
    bench = lived(tmp_path)
    log_of(bench, "ledger/stream")[gone].unlink()
    assert (
        said(bench)["files"] == f"ledger/stream: cannot be opened: version {version} is missing from its log"
    )


def test_what_is_said_of_a_table_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    log = log_of(bench, "late/stream")[-1]
    log.write_bytes(log.read_bytes()[:100])
    for told in said(bench).values():
        assert "cannot be opened" in told
        assert len(told.splitlines()) == 1


def test_a_log_that_was_summed_up_and_cannot_be_read_is_found(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    DeltaTable(bench.folder / "warehouse" / "late" / "stream").create_checkpoint()
    log_of(bench, "late/stream")[0].write_bytes(b'{"txn" \xff\n')
    assert said(bench)["files"].startswith("late/stream, version 0: its log entry cannot be read")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_another_kind_under_the_name_is_found_by_the_columns_that_it_lacks(
    tmp_path: Path, table: str
) -> None:
    bench = lived(tmp_path)
    path = bench.folder / "warehouse" / table
    shutil.rmtree(path)
    write_deltalake(path, pa.table({"colour": ["red"]}))
    told = found(bench)
    assert {one.state for one in told.values()} == {"failed"}
    assert told["files"].summary.startswith(f"{table}: has no column ")
    assert not any("ended with" in one.summary for one in told.values())


def test_a_column_of_a_result_that_is_gone_is_a_difference() -> None:
    (one,) = compare_results(OF, rows().drop_columns(["mean"]), rows())
    assert str(one) == "latest/minutes: has no column mean"


@pytest.mark.parametrize("name", ["topic", "partition", "start", "folded"])
def test_a_row_of_the_ledger_that_lacks_a_value_is_found(tmp_path: Path, name: str) -> None:
    bench = lived(tmp_path)
    nothing: dict[str, int | None] = {name: None}
    rewrite(bench, "ledger/stream", lambda table: edited(table.sort_by(ORDER), 2, **nothing))
    told = said(bench)
    assert set(told) == {"offset ranges", "accounts", "agreement", "late and quarantined"}
    assert all(f"has a row without {name}" in one for one in told.values())


def test_an_account_that_counts_below_nought_does_not_add_up(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    rewrite(bench, "ledger/stream", lambda table: edited(table.sort_by(ORDER), 0, folded=3, late=-1))
    assert said(bench)["accounts"] == (
        "records/0, batch 0: 2 records read of offsets 0 to 1, but "
        "3 folded + -1 late + 0 quarantined + 0 duplicate + 0 filtered"
    )


def test_a_late_record_that_is_told_twice_of_one_window_is_found_where_windows_overlap() -> None:
    at = pa.timestamp("us", tz="UTC")
    ledger = pa.table({"topic": ["t"], "partition": pa.array([0], pa.int32()), "batch_id": [3], "start": [0],
                       "end": [9], "late": [1]})  # fmt: skip
    starts = pa.array([0, 10_000_000, 10_000_000], pa.int64()).cast(at)
    late = pa.table({"topic": ["t"] * 3, "partition": pa.array([0] * 3, pa.int32()), "offset": [7] * 3,
                     "batch_id": [3] * 3, "window_start": starts})  # fmt: skip
    names = ("topic", "partition", "offset", "window_start")
    (twice,) = check_side_table(ledger, late, "late", names, allow_more=True)
    assert str(twice) == (
        "late of t/0 offset 7: the table has the record 2 times for the window of 1970-01-01 00:00:10"
    )
    assert list(check_side_table(ledger, late.slice(0, 2), "late", names, allow_more=True)) == []
    assert list(check_side_table(ledger, late, "late", None, allow_more=True)) == []


def damaged_journal(bench: Bench) -> None:
    max((bench.folder / "stream" / "journal").glob("*.outcome.json")).write_text("")


def damaged_decisions(bench: Bench) -> None:
    (bench.folder / "quarantine").mkdir()
    (bench.folder / "quarantine" / "records.jsonl").write_text("{no json}\n")


@pytest.mark.parametrize(
    ("damage", "check", "begins"),
    [(damaged_journal, "files", "journal of stream: "), (damaged_decisions, "quarantine", "decisions: ")],
)
def test_a_file_beside_the_tables_that_cannot_be_read_is_wrong_and_keeps_no_other_check_from_being_made(
    tmp_path: Path, damage: Callable[[Bench], None], check: str, begins: str
) -> None:
    bench = lived(tmp_path)
    damage(bench)
    told = said(bench)
    assert set(told) == {check}
    assert told[check].startswith(begins)
    assert "Restore the file from a backup" in told[check] or "restore it from a backup" in told[check]
    (bench.folder / "warehouse" / "ledger" / "stream" / "_delta_log").rename(tmp_path / "gone")
    assert "offset ranges" in found(bench)


def test_a_check_that_ends_in_an_error_is_wrong_and_says_which(tmp_path: Path) -> None:
    def check() -> AuditVerdict:
        raise KeyError("colour")

    told = made_of(scope_of(lived(tmp_path)), "offset ranges", check)
    assert (told.state, told.summary) == (
        "failed",
        "offset ranges: the check raised KeyError: 'colour'; its input is not what streams write",
    )
