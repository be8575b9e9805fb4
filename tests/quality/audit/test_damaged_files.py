"""Damaged tables, journals and decisions: each is reported, and the other checks still run."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import TABLES
from tests.quality.audit.recorded_stream import (
    ORDER,
    create_scope,
    edit_row,
    judge_stream,
    rewrite,
    run_stream,
)
from tests.quality.audit.test_result_comparison import COMPARISON, build_rows

from penstock.quality.audit.result_comparison import compare_results
from penstock.quality.audit.runner import run_check
from penstock.quality.audit.side_tables import check_side_table
from penstock.quality.audit.verdict import AuditVerdict, CheckOutcome


def find_unproven(bench: Bench) -> dict[str, AuditVerdict]:
    """Return the verdict of each check that did not pass."""
    verdicts = judge_stream(create_scope(bench))
    return {verdict.check: verdict for verdict in verdicts if verdict.state != "passed"}


def find_failures(bench: Bench) -> dict[str, str]:
    """Return the summary of each failed check."""
    return {
        name: verdict.summary for name, verdict in find_unproven(bench).items() if verdict.state == "failed"
    }


def list_log_entries(bench: Bench, table: str) -> list[Path]:
    return sorted((bench.folder / "warehouse" / table / "_delta_log").glob("*.json"))


NEWEST_BATCH = {"late/stream": 4, "quarantine/records": 2}
"""The last batch that wrote to a table, if not batch 4."""


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_its_newest_commit_contradicts_the_journal(tmp_path: Path, table: str) -> None:
    bench = run_stream(tmp_path)
    list_log_entries(bench, table)[-1].unlink()
    batch = NEWEST_BATCH.get(table, 4)
    failures = find_failures(bench)["files"]
    assert failures.startswith(f"{table}: stream committed batch {batch} to it, but it")


@pytest.mark.parametrize(("removed", "version"), [(0, 0), (2, 2)])
def test_a_gap_in_a_table_log_names_the_missing_version(tmp_path: Path, removed: int, version: int) -> None:
    bench = run_stream(tmp_path)
    list_log_entries(bench, "ledger/stream")[removed].unlink()
    assert (
        find_failures(bench)["files"]
        == f"ledger/stream: cannot be opened: version {version} is missing from its log"
    )


def test_an_unreadable_table_is_described_in_one_line(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    log = list_log_entries(bench, "late/stream")[-1]
    log.write_bytes(log.read_bytes()[:100])
    for failures in find_failures(bench).values():
        assert "cannot be opened" in failures
        assert len(failures.splitlines()) == 1


def test_a_damaged_log_entry_before_a_checkpoint_is_found(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    DeltaTable(bench.folder / "warehouse" / "late" / "stream").create_checkpoint()
    list_log_entries(bench, "late/stream")[0].write_bytes(b'{"txn" \xff\n')
    assert find_failures(bench)["files"].startswith("late/stream, version 0: its log entry cannot be read")


@pytest.mark.parametrize("table", TABLES)
def test_a_foreign_table_is_found_by_its_missing_columns(tmp_path: Path, table: str) -> None:
    bench = run_stream(tmp_path)
    path = bench.folder / "warehouse" / table
    shutil.rmtree(path)
    write_deltalake(path, pa.table({"colour": ["red"]}))
    failures = find_unproven(bench)
    assert {verdict.state for verdict in failures.values()} == {"failed"}
    assert failures["files"].summary.startswith(f"{table}: has no column ")
    assert not any("ended with" in verdict.summary for verdict in failures.values())


def test_a_missing_result_column_is_a_difference() -> None:
    (difference,) = compare_results(COMPARISON, build_rows().drop_columns(["mean"]), build_rows())
    assert str(difference) == "latest/minutes: has no column mean"


@pytest.mark.parametrize("name", ["topic", "partition", "start", "accepted"])
def test_a_ledger_row_without_a_value_is_found(tmp_path: Path, name: str) -> None:
    bench = run_stream(tmp_path)
    missing: dict[str, int | None] = {name: None}
    rewrite(bench, "ledger/stream", lambda table: edit_row(table.sort_by(ORDER), 2, **missing))
    failures = find_failures(bench)
    assert set(failures) == {"offset ranges", "accounts", "agreement", "late and quarantined"}
    assert all(f"has a row without {name}" in verdict for verdict in failures.values())


def test_a_negative_account_does_not_add_up(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    rewrite(bench, "ledger/stream", lambda table: edit_row(table.sort_by(ORDER), 0, accepted=3, late=-1))
    assert find_failures(bench)["accounts"] == (
        "records/0, batch 0: 2 records read of offsets 0 to 1, but "
        "3 accepted + -1 late + 0 quarantined + 0 duplicate + 0 filtered"
    )


def test_a_late_record_listed_twice_for_one_window_is_found() -> None:
    at = pa.timestamp("us", tz="UTC")
    ledger = pa.table({"topic": ["t"], "partition": pa.array([0], pa.int32()), "batch_id": [3], "start": [0],
                       "end": [9], "late": [1]})  # fmt: skip
    starts = pa.array([0, 10_000_000, 10_000_000], pa.int64()).cast(at)
    late = pa.table({"topic": ["t"] * 3, "partition": pa.array([0] * 3, pa.int32()), "offset": [7] * 3,
                     "batch_id": [3] * 3, "window_start": starts})  # fmt: skip
    names = ("topic", "partition", "offset", "window_start")
    (difference,) = check_side_table(ledger, late, "late", names, allow_more=True)
    assert str(difference) == (
        "late of t/0 offset 7: the table has the record 2 times for the window of 1970-01-01 00:00:10"
    )
    assert list(check_side_table(ledger, late.slice(0, 2), "late", names, allow_more=True)) == []
    assert list(check_side_table(ledger, late, "late", None, allow_more=True)) == []


def damage_journal(bench: Bench) -> None:
    max((bench.folder / "stream" / "journal").glob("*.outcome.json")).write_text("")


def damage_decisions(bench: Bench) -> None:
    (bench.folder / "quarantine").mkdir()
    (bench.folder / "quarantine" / "records.jsonl").write_text("{no json}\n")


@pytest.mark.parametrize(
    ("damage", "check", "prefix"),
    [(damage_journal, "files", "journal of stream: "), (damage_decisions, "quarantine", "decisions: ")],
)
def test_an_unreadable_file_fails_only_its_own_check(
    tmp_path: Path, damage: Callable[[Bench], None], check: str, prefix: str
) -> None:
    bench = run_stream(tmp_path)
    damage(bench)
    failures = find_failures(bench)
    assert set(failures) == {check}
    assert failures[check].startswith(prefix)
    assert "`penstock stream repair NAME`" in failures[check] or "restore it from a backup" in failures[check]
    (bench.folder / "warehouse" / "ledger" / "stream" / "_delta_log").rename(tmp_path / "gone")
    assert "offset ranges" in find_unproven(bench)


def test_a_check_that_raises_fails_with_its_error(tmp_path: Path) -> None:
    def check() -> CheckOutcome:
        raise KeyError("colour")

    failures = run_check("offset ranges", check)
    assert (failures.state, failures.summary) == (
        "failed",
        "offset ranges: the check raised KeyError: 'colour'; its input is not what streams write",
    )
