"""Checks of ledger, journal and tables: undamaged streams pass, and each kind of damage is located."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, PLANS, TABLES
from tests.quality.audit.recorded_stream import (
    ORDER,
    create_scope,
    edit_row,
    find_failures,
    judge_stream,
    read_rows,
    rewrite,
    run_checks,
    run_stream,
)

from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.engine.plan.codec import fingerprint
from penstock.engine.sinks.final_panes import FinalPanes
from penstock.engine.storage import ObjectStorePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_change import TableChange
from penstock.quality.audit.audit_check import StreamCheck, list_checks
from penstock.quality.audit.checks.agreement_check import check_agreement
from penstock.quality.audit.checks.files_check import check_files
from penstock.quality.audit.checks.quarantine_check import check_decisions
from penstock.quality.audit.verdict import AuditReport
from penstock.quality.errors import DamagedTableError, NoBatchesYetError
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision

SIDE_TABLES = "late and quarantined"


@pytest.mark.parametrize("name", sorted(PLANS))
def test_an_undamaged_stream_passes_with_every_kind_of_window(tmp_path: Path, name: str) -> None:
    verdicts = run_checks(run_stream(tmp_path, name))
    assert {check: verdict.state for check, verdict in verdicts.items()} == {
        check.name: "passed" for check in list_checks(StreamCheck)
    }
    assert verdicts["accounts"].summary.startswith("10 read = ")


@pytest.mark.parametrize("table", ["panes/stream", "latest/stream", "late/stream", "ledger/stream"])
def test_a_deleted_file_is_named(tmp_path: Path, table: str) -> None:
    bench = run_stream(tmp_path)
    path = bench.folder / "warehouse" / table
    file = DeltaTable(path).file_uris()[0].rpartition("/")[2]
    (path / file).unlink()
    assert (
        describe_file_failures(bench) == f"{table}, file {file}: the table lists it, but the file is missing"
    )
    if table.startswith("ledger"):
        with pytest.raises(DamagedTableError, match="cannot be read"):
            _ = create_scope(bench).ledger


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_table_is_named(tmp_path: Path, table: str) -> None:
    bench = run_stream(tmp_path)
    shutil.rmtree(bench.folder / "warehouse" / table)
    scope = create_scope(bench)
    report = AuditReport("stream", scope.upto, tuple(judge_stream(scope)))
    assert str(report.first_difference) == f"{table}: table is missing, but stream has written up to batch 5"
    states = {verdict.check: verdict.state for verdict in report.verdicts}
    assert {name for name, state in states.items() if state != "passed"} == {
        "files",
        *FAILED_CHECKS_WITHOUT[table],
    }


FAILED_CHECKS_WITHOUT: dict[str, set[str]] = {
    "panes/stream": {"panes"},
    "latest/stream": set(),
    "late/stream": {SIDE_TABLES},
    "quarantine/records": {SIDE_TABLES},
    "ledger/stream": {"offset ranges", "accounts", "agreement", SIDE_TABLES},
}
"""The checks that fail without a table, besides that of files."""


def test_a_table_declared_after_the_last_batch_may_be_missing(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    stage = bench.plan.only_stage
    for path in (bench.folder / "stream" / "journal").glob("*.outcome.json"):
        outcome = msgspec.json.decode(path.read_bytes().splitlines()[0])
        path.write_bytes(msgspec.json.encode({**outcome, "plan": fingerprint(bench.plan)}))
    bench.plan = dataclasses.replace(
        bench.plan, stages=(dataclasses.replace(stage, sinks=(*stage.sinks, FinalPanes("stream"))),)
    )
    assert "files" not in find_failures(bench)
    shutil.rmtree(bench.folder / "warehouse" / "latest" / "stream")
    assert find_failures(bench)["files"].startswith("latest/stream: ")


def test_a_table_of_an_archived_topic_must_exist(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    scope = dataclasses.replace(create_scope(bench), archived_topics=["records"])
    locations = [difference.location for difference in check_files(scope).differences]
    assert locations == ["ledger/archive-records", "raw/records"]


def test_an_overwritten_file_fails_the_check(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    (file,) = (bench.folder / "warehouse" / "ledger" / "stream").glob("*0003-*.parquet")
    file.write_bytes(b"\0" * file.stat().st_size)
    verdicts = {verdict.check: verdict for verdict in judge_stream(create_scope(bench))}
    verdict = verdicts["offset ranges"]
    assert (verdict.state, verdict.summary.partition(":")[0]) == ("failed", str(file.parent))


def test_an_unreadable_table_does_not_hide_others(
    tmp_path: Path,
) -> None:
    bench = run_stream(tmp_path)
    warehouse = bench.folder / "warehouse"
    (log,) = (warehouse / "latest" / "stream" / "_delta_log").glob("*0.json")
    log.write_text("{no json")
    (file,) = (warehouse / "late" / "stream").glob("*.parquet")
    file.unlink()
    differences = check_files(create_scope(bench)).differences
    assert [difference.location.partition(",")[0] for difference in differences] == [
        "latest/stream",
        "late/stream",
    ]
    assert differences[0].description.startswith("cannot be opened: ")


def describe_file_failures(bench: Bench) -> str:
    return check_files(create_scope(bench)).summary


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    (file,) = (bench.folder / "warehouse" / "late" / "stream").glob("*.parquet")
    pq.write_table(pa.concat_tables([pq.read_table(file)] * 2), file)
    assert f"late/stream, file {file.name}: has" in describe_file_failures(bench)


def test_damage_in_an_object_store_is_found(tmp_path: Path, bucket: ObjectStorePath) -> None:
    bench = run_stream(tmp_path, table_root=bucket)
    assert find_failures(bench) == {}
    ledger, late = bucket / "ledger" / "stream", bucket / "late" / "stream"
    table = LogTable(ledger, pa.schema(open_delta_table(ledger).schema().to_arrow()), "stream")
    table._commit(
        2, next(outcome.changes["ledger/stream"] for outcome in bench.outcomes if outcome.batch_id == 2), 0
    )
    assert "has batch 2 of stream; version" in describe_file_failures(bench)
    (file,) = (file for file in late.iterdir() if file.name.startswith("stream-000000000004-"))
    file.write_bytes(b"PAR1")
    assert describe_file_failures(bench).startswith(f"late/stream, file {file.name}: has 4 bytes")
    file.unlink()
    assert describe_file_failures(bench) == (
        f"late/stream, file {file.name}: the table lists it, but the file is missing"
    )
    with pytest.raises(DamagedTableError, match="cannot be read"):
        _ = create_scope(bench).late_rows


def test_a_duplicate_commit_is_found_by_its_version(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    path = bench.folder / "warehouse" / "ledger" / "stream"
    ledger = LogTable(path, pa.schema(DeltaTable(path).schema().to_arrow()), "stream")
    change = next(outcome.changes["ledger/stream"] for outcome in bench.outcomes if outcome.batch_id == 2)
    ledger._commit(2, change, 0)
    version = DeltaTable(path).version()
    message = f"ledger/stream, version {version}: has batch 2 of stream; version"
    assert find_failures(bench)["files"].startswith(message)


@pytest.mark.parametrize(
    ("table", "check", "message"),
    [
        ("ledger/stream", "offset ranges", "records/0 offset 2: the ledger has batch 2 more than once"),
        (
            "late/stream",
            SIDE_TABLES,
            "late of records/0 offset 4: the table has the record 2 times",
        ),
        (
            "panes/stream",
            "panes",
            "panes/stream, batch 3: the batch reports 4 rows of kind on_time; the table has 8",
        ),
    ],
)
def test_a_copied_file_is_found_by_its_duplicates(
    tmp_path: Path, table: str, check: str, message: str
) -> None:
    bench = run_stream(tmp_path)
    path = bench.folder / "warehouse" / table
    number = {"ledger": 2, "late": 4, "panes": 3}[table.partition("/")[0]]
    (file,) = path.glob(f"stream-{number:012d}-*.parquet")
    copied = pq.read_table(file)
    other = LogTable(path, pa.schema(DeltaTable(path).schema().to_arrow()), "another writer")
    other.commit(0, TableChange([other.write_file(copied.cast(other.schema), "copy", 0)]), 0)
    assert find_failures(bench)[check] == message


def test_a_skipped_offset_is_found_with_the_batches_around_it(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    rewrite(bench, "ledger/stream", without_batch(2))
    failures = find_failures(bench)
    assert failures["offset ranges"] == (
        "records/0 offset 2: no batch read offsets 2 to 2: batch 0 ends before, batch 3 starts after"
    )
    assert failures["agreement"] == "records/0, batch 2: the control store has it, but the ledger does not"


def without_batch(number: int) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.filter(pc.not_equal(rows.column("batch_id"), number))


def test_an_overlapping_range_is_found(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    rewrite(bench, "ledger/stream", lambda rows: edit_row(rows.sort_by(ORDER), 2, start=1))
    assert (
        find_failures(bench)["offset ranges"]
        == "records/0 offset 1: batches 0 and 2 both read offsets 1 to 1"
    )


def test_an_account_that_does_not_add_up_is_found(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    rewrite(bench, "ledger/stream", lambda rows: edit_row(rows.sort_by(ORDER), 0, accepted=1))
    assert find_failures(bench)["accounts"] == (
        "records/0, batch 0: 2 records read of offsets 0 to 1, but "
        "1 accepted + 0 late + 0 quarantined + 0 duplicate + 0 filtered"
    )


def test_a_forged_account_contradicts_control_store_and_tables(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    rewrite(bench, "ledger/stream", lambda rows: edit_row(rows.sort_by(ORDER), 0, accepted=1, late=1))
    failures = find_failures(bench)
    assert (
        failures["agreement"] == "records/0, batch 0: accepted is 1 in the ledger, but 2 in the control store"
    )
    assert failures[SIDE_TABLES] == "late of records/0, batch 0: the ledger counts 1 records; the table has 0"
    assert "accounts" not in failures


def test_a_wrong_account_of_another_stage_names_the_stage(tmp_path: Path) -> None:
    bench = run_stream(tmp_path, "parallel stages")
    assert run_checks(bench)[SIDE_TABLES].summary == "3 late and 1 quarantined rows match the ledger"
    rewrite(bench, "ledger/stream.beside", lambda rows: edit_row(rows.sort_by(ORDER), 0, accepted=1, late=1))
    assert find_failures(bench) == {
        SIDE_TABLES: "beside: late of records/0, batch 0: the ledger counts 1 records; the table has 0"
    }
    rewrite(bench, "ledger/stream.beside", without_batch(2))
    assert find_failures(bench)["offset ranges"] == (
        "beside: records/0 offset 2: no batch read offsets 2 to 2: batch 0 ends before, batch 3 starts after"
    )


def test_records_deleted_from_quarantine_are_missing(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    DeltaTable(bench.folder / "warehouse" / "quarantine" / "records").delete()
    assert find_failures(bench)[SIDE_TABLES] == (
        "quarantined of records/1, batch 2: the ledger counts 1 records; the table has 0"
    )


def test_a_late_record_that_its_batch_did_not_read_is_found(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    rewrite(bench, "late/stream", lambda rows: edit_row(rows, 0, offset=40))
    assert (
        find_failures(bench)[SIDE_TABLES]
        == "late of records/0 offset 40: its batch 4 did not read this offset"
    )


def test_a_batch_missing_from_the_control_store_is_found(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    bench.outcomes[:] = [outcome for outcome in bench.outcomes if outcome.batch_id != 3]
    assert find_failures(bench)["agreement"] == "batch 4: follows batch 2 in the control store"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"watermark_ms": 0}, "batch 4: its watermark is before that of batch 3"),
        ({"watermark_ms": None}, "batch 4: has no watermark, but batch 3 has one"),
        ({"watermark_ms": 10**9}, "batch 5: its watermark is before that of batch 4"),
        ({"clock_ms": 10**9}, "batch 5: its time is "),
        ({"panes": {}}, "batch 4: its panes are {} in the control store, but "),
    ],
)
def test_a_changed_batch_in_the_control_store_is_found(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    scope = create_scope(run_stream(tmp_path))
    batches = list(scope.batches)
    assert batches[4].batch_id == 4
    batches[4] = dataclasses.replace(batches[4], **changed)
    verdict = check_agreement(dataclasses.replace(scope, batches=batches))
    assert (verdict.state, verdict.summary[: len(message)]) == ("failed", message)


@pytest.mark.parametrize(("delta", "state"), [(0, "passed"), (1, "failed")])
def test_the_watermark_of_the_last_batch_must_equal_the_journal(
    tmp_path: Path, delta: int, state: str
) -> None:
    scope = create_scope(run_stream(tmp_path))
    last = scope.batches[-1]
    assert last.watermark_ms is not None
    changed = dataclasses.replace(last, watermark_ms=last.watermark_ms + delta)
    verdict = check_agreement(dataclasses.replace(scope, batches=[*scope.batches[:-1], changed]))
    assert verdict.state == state


def test_a_decision_about_a_record_outside_of_quarantine_is_found(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    decisions = DecisionLog(tmp_path / "quarantine" / "records.jsonl")
    decisions.record([QuarantineDecision("replayed", 1, 2, 0, "", b"x")])
    assert "quarantine" not in find_failures(bench)
    assert run_checks(bench)["quarantine"].summary.startswith("1 quarantined = 0 pending + 1 replaying")
    decisions.record([QuarantineDecision("discarded", 0, 77, 0)])
    assert find_failures(bench)["quarantine"] == "records/0 offset 77: discarded, but it is not in quarantine"


@pytest.mark.parametrize(
    ("decision", "is_missing"),
    [
        (QuarantineDecision("replayed", 0, 4, 0), False),
        (QuarantineDecision("discarded", 0, 4, 0), False),
        (QuarantineDecision("discarded", 0, 7, 0), False),
        (QuarantineDecision("replayed", 0, 7, 0), True),
        (QuarantineDecision("discarded", 0, 9, 0), True),
        (QuarantineDecision("discarded", 1, 7, 0), True),
    ],
)
def test_a_replay_explains_records_missing_from_quarantine(
    decision: QuarantineDecision, is_missing: bool
) -> None:
    differences = list(check_decisions("records", [], [decision], 0, lambda: {0: (5, 9)}))
    assert bool(differences) is is_missing


def test_records_before_the_start_of_a_stream_may_be_missing(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    (first,) = {row["offset"] for row in read_rows(bench, "quarantine/records")}
    DecisionLog(tmp_path / "quarantine" / "records.jsonl").record(
        [QuarantineDecision("replayed", 1, first, 0, "", b"x")]
    )
    rewrite(bench, "quarantine/records", lambda rows: rows.slice(0, 0))
    assert "is not in quarantine" in find_failures(bench)["quarantine"]
    later = pc.field("partition") == 0
    rewrite(
        bench,
        "ledger/stream",
        lambda rows: pa.concat_tables([rows.filter(later), rows_from_offset(rows, first + 1)]),
    )
    assert "quarantine" not in find_failures(bench)


def rows_from_offset(rows: pa.Table, start: int) -> pa.Table:
    """Return the ledger rows of partition 1 from an offset on."""
    is_later = pc.and_(pc.equal(rows.column("partition"), 1), pc.greater_equal(rows.column("start"), start))
    return rows.filter(is_later)


def test_more_replayed_records_than_decisions_are_found() -> None:
    (difference,) = check_decisions("records", [], [], 3)
    assert str(difference) == "records: 3 records were replayed, but only 0 decisions say so"


def test_commits_during_an_audit_are_not_part_of_it(tmp_path: Path) -> None:
    bench = run_stream(tmp_path)
    bench.outcomes[:] = [outcome for outcome in bench.outcomes if outcome.batch_id <= 2]
    assert find_failures(bench) == {}
    assert run_checks(bench)["accounts"].summary.startswith("6 read = ")


def test_a_stream_without_a_batch_has_nothing_to_audit(tmp_path: Path) -> None:
    with pytest.raises(NoBatchesYetError, match="stream has committed no batch"):
        create_scope(Bench(PLAN, tmp_path))


def test_the_account_fields_of_audit_and_engine_agree() -> None:
    from penstock.quality.audit.checks.agreement_check import ACCOUNT_FIELDS

    assert ["topic", "partition", *ACCOUNT_FIELDS] == LEDGER_SCHEMA.names
