"""What a stream wrote about itself: right after any life, and each kind of damage is found with its place."""

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
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stored import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, PLANS, TABLES, Fuse, run

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.plan.codec import fingerprint
from penstock.engine.sinks.final_panes import FinalPanes
from penstock.engine.storage import ObjectStorePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_change import TableChange
from penstock.quality.audit.decision_checks import check_decisions
from penstock.quality.audit.ledger_checks import STREAM_CHECKS
from penstock.quality.audit.runner import run_check as made_of
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditReport, AuditVerdict
from penstock.quality.errors import DamagedTableError, NoBatchesYetError
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision

SIDE_TABLES = "late and quarantined"


def lived(folder: Path, name: str = "fixed", elsewhere: ObjectStorePath | None = None) -> Bench:
    bench = Bench(PLANS[name], folder, elsewhere=elsewhere)
    run(bench, Fuse(-1))
    bench.told[:] = BatchJournal(folder / "stream" / "journal").read_outcomes()
    return bench


def scope_of(bench: Bench) -> AuditScope:
    def no_session() -> None:
        raise AssertionError("what a stream wrote about itself needs no Spark")

    told = {outcome.batch_id: outcome for outcome in bench.told}
    return AuditScope(
        plan=bench.plan,
        batches=[to_batch_record("stream", told[number]) for number in sorted(told)],
        warehouse=bench.warehouse,
        journal=bench.folder / "stream" / "journal",
        producer_ledgers={},
        broker=BrokerAccess("nowhere:1"),
        decisions_folder=bench.folder / "quarantine",
        scratch_folder=bench.folder / "scratch",
        clock=lambda: 0,
        open_session=no_session,  # type: ignore[arg-type]
    )


def verdicts(bench: Bench) -> dict[str, AuditVerdict]:
    scope = scope_of(bench)
    return {name: check(scope) for name, check in STREAM_CHECKS}


def wrong(bench: Bench) -> dict[str, str]:
    """The first difference of each check that found one."""
    return {name: one.summary for name, one in verdicts(bench).items() if one.state == "failed"}


def rewrite(bench: Bench, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a table anew, as somebody who means to mend it would."""
    path = bench.folder / "warehouse" / table
    write_deltalake(path, change(DeltaTable(path).to_pyarrow_table()), mode="overwrite")


def edited(rows: pa.Table, at: int, **values: int) -> pa.Table:
    told = rows.to_pylist()
    told[at].update(values)
    return pa.Table.from_pylist(told, rows.schema)


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_life_without_damage_is_right_in_every_kind_of_window(tmp_path: Path, name: str) -> None:
    found = verdicts(lived(tmp_path, name))
    assert {check: verdict.state for check, verdict in found.items()} == {
        name: "passed" for name, _ in STREAM_CHECKS
    }
    assert found["accounts"].summary.startswith("10 read = ")


@pytest.mark.parametrize("table", ["panes/stream", "latest/stream", "late/stream", "ledger/stream"])
def test_a_deleted_file_is_found_by_its_name(tmp_path: Path, table: str) -> None:
    bench = lived(tmp_path)
    path = bench.folder / "warehouse" / table
    file = DeltaTable(path).file_uris()[0].rpartition("/")[2]
    (path / file).unlink()
    assert wrong_files(bench) == f"{table}, file {file}: the table lists it, but the file is missing"
    if table.startswith("ledger"):
        with pytest.raises(DamagedTableError, match="cannot be read"):
            _ = scope_of(bench).ledger


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_gone_is_found_by_its_name(tmp_path: Path, table: str) -> None:
    bench = lived(tmp_path)
    shutil.rmtree(bench.folder / "warehouse" / table)
    scope = scope_of(bench)
    report = AuditReport(
        "stream", scope.upto, tuple(made(scope, name, check) for name, check in STREAM_CHECKS)
    )
    assert str(report.first_difference) == f"{table}: table is missing, but stream has written up to batch 5"
    states = {verdict.check: verdict.state for verdict in report.verdicts}
    assert {name for name, state in states.items() if state != "passed"} == {"files", *WITHOUT[table]}


WITHOUT: dict[str, set[str]] = {
    "panes/stream": {"panes"},
    "latest/stream": set(),
    "late/stream": {SIDE_TABLES},
    "quarantine/records": {SIDE_TABLES},
    "ledger/stream": {"offset ranges", "accounts", "agreement", SIDE_TABLES},
}
"""The checks that are not right without a table, beside that of files."""


def made(scope: AuditScope, name: str, check: Callable[[AuditScope], AuditVerdict]) -> AuditVerdict:
    return made_of(scope, name, lambda: check(scope))


def test_a_table_that_is_declared_since_the_last_batch_may_be_missing(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    stage = bench.plan.only_stage
    for path in (bench.folder / "stream" / "journal").glob("*.outcome.json"):
        told = msgspec.json.decode(path.read_bytes())
        path.write_bytes(msgspec.json.encode({**told, "plan": fingerprint(bench.plan)}))
    bench.plan = dataclasses.replace(
        bench.plan, stages=(dataclasses.replace(stage, sinks=(*stage.sinks, FinalPanes("stream"))),)
    )
    assert "files" not in wrong(bench)
    shutil.rmtree(bench.folder / "warehouse" / "latest" / "stream")
    assert wrong(bench)["files"].startswith("latest/stream: ")


def test_a_table_whose_archive_has_committed_must_be_there(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    scope = dataclasses.replace(scope_of(bench), archived_topics=["records"])
    found = [difference.location for difference in dict(STREAM_CHECKS)["files"](scope).differences]
    assert found == ["ledger/archive-records", "raw/records"]


def test_a_file_that_is_no_table_any_more_is_wrong_and_not_merely_unproven(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    (file,) = (bench.folder / "warehouse" / "ledger" / "stream").glob("*0003-*.parquet")
    file.write_bytes(b"\0" * file.stat().st_size)
    found = made(scope_of(bench), "offset ranges", dict(STREAM_CHECKS)["offset ranges"])
    assert (found.state, found.summary.partition(":")[0]) == ("failed", str(file.parent))


def test_a_table_that_cannot_be_opened_is_wrong_and_keeps_no_other_from_being_looked_at(
    tmp_path: Path,
) -> None:
    bench = lived(tmp_path)
    warehouse = bench.folder / "warehouse"
    (log,) = (warehouse / "latest" / "stream" / "_delta_log").glob("*0.json")
    log.write_text("{no json")
    (file,) = (warehouse / "late" / "stream").glob("*.parquet")
    file.unlink()
    found = dict(STREAM_CHECKS)["files"](scope_of(bench)).differences
    assert [one.location.partition(",")[0] for one in found] == ["latest/stream", "late/stream"]
    assert found[0].description.startswith("cannot be opened: ")


def wrong_files(bench: Bench) -> str:
    return dict(STREAM_CHECKS)["files"](scope_of(bench)).summary


def test_a_file_that_was_written_over_is_found(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    (file,) = (bench.folder / "warehouse" / "late" / "stream").glob("*.parquet")
    pq.write_table(pa.concat_tables([pq.read_table(file)] * 2), file)
    assert f"late/stream, file {file.name}: has" in wrong_files(bench)


def test_damage_in_an_object_store_is_found_as_in_a_folder(tmp_path: Path, bucket: ObjectStorePath) -> None:
    bench = lived(tmp_path, elsewhere=bucket)
    assert wrong(bench) == {}
    ledger, late = bucket / "ledger" / "stream", bucket / "late" / "stream"
    table = LogTable(ledger, pa.schema(open_delta_table(ledger).schema().to_arrow()), "stream")
    table._commit(2, next(one.changes["ledger/stream"] for one in bench.told if one.batch_id == 2), 0)
    assert "has batch 2 of stream; version" in wrong_files(bench)
    (file,) = (each for each in late.iterdir() if each.name.startswith("stream-000000000004-"))
    file.write_bytes(b"PAR1")
    assert wrong_files(bench).startswith(f"late/stream, file {file.name}: has 4 bytes")
    file.unlink()
    assert wrong_files(bench) == (
        f"late/stream, file {file.name}: the table lists it, but the file is missing"
    )
    with pytest.raises(DamagedTableError, match="cannot be read"):
        _ = scope_of(bench).late_rows


def test_a_doubled_commit_is_found_by_its_version(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    path = bench.folder / "warehouse" / "ledger" / "stream"
    ledger = LogTable(path, pa.schema(DeltaTable(path).schema().to_arrow()), "stream")
    change = next(outcome.changes["ledger/stream"] for outcome in bench.told if outcome.batch_id == 2)
    ledger._commit(2, change, 0)
    version = DeltaTable(path).version()
    said = f"ledger/stream, version {version}: has batch 2 of stream; version"
    assert wrong(bench)["files"].startswith(said)


@pytest.mark.parametrize(
    ("table", "check", "said"),
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
def test_a_copied_file_is_found_by_what_it_doubles(tmp_path: Path, table: str, check: str, said: str) -> None:
    bench = lived(tmp_path)
    path = bench.folder / "warehouse" / table
    number = {"ledger": 2, "late": 4, "panes": 3}[table.partition("/")[0]]
    (file,) = path.glob(f"stream-{number:012d}-*.parquet")
    copied = pq.read_table(file)
    other = LogTable(path, pa.schema(DeltaTable(path).schema().to_arrow()), "somebody else")
    other.commit(0, TableChange([other.write_file(copied.cast(other.schema), "copy", 0)]), 0)
    assert wrong(bench)[check] == said


def test_a_skipped_offset_is_found_with_the_batches_around_it(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    rewrite(bench, "ledger/stream", without_batch(2))
    found = wrong(bench)
    assert found["offset ranges"] == (
        "records/0 offset 2: no batch read offsets 2 to 2: batch 0 ends before, batch 3 starts after"
    )
    assert found["agreement"] == "records/0, batch 2: the control store has it, but the ledger does not"


def without_batch(number: int) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.filter(pc.not_equal(rows.column("batch_id"), number))


def test_a_range_that_was_taken_twice_is_found(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    rewrite(bench, "ledger/stream", lambda rows: edited(rows.sort_by(ORDER), 2, start=1))
    assert wrong(bench)["offset ranges"] == "records/0 offset 1: batches 0 and 2 both read offsets 1 to 1"


ORDER = [("batch_id", "ascending"), ("partition", "ascending")]


def test_an_account_that_does_not_add_up_is_found(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    rewrite(bench, "ledger/stream", lambda rows: edited(rows.sort_by(ORDER), 0, folded=1))
    assert wrong(bench)["accounts"] == (
        "records/0, batch 0: 2 records read of offsets 0 to 1, but "
        "1 folded + 0 late + 0 quarantined + 0 duplicate + 0 filtered"
    )


def test_an_account_that_was_made_to_add_up_is_found_by_those_who_know_better(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    rewrite(bench, "ledger/stream", lambda rows: edited(rows.sort_by(ORDER), 0, folded=1, late=1))
    found = wrong(bench)
    assert found["agreement"] == "records/0, batch 0: folded is 1 in the ledger, but 2 in the control store"
    assert found[SIDE_TABLES] == "late of records/0, batch 0: the ledger counts 1 records; the table has 0"
    assert "accounts" not in found


def test_what_is_wrong_with_the_account_of_another_stage_is_said_with_its_name(tmp_path: Path) -> None:
    bench = lived(tmp_path, "side by side")
    assert verdicts(bench)[SIDE_TABLES].summary == "3 late and 1 quarantined rows match the ledger"
    rewrite(bench, "ledger/stream.beside", lambda rows: edited(rows.sort_by(ORDER), 0, folded=1, late=1))
    assert wrong(bench) == {
        SIDE_TABLES: "beside: late of records/0, batch 0: the ledger counts 1 records; the table has 0"
    }
    rewrite(bench, "ledger/stream.beside", without_batch(2))
    assert wrong(bench)["offset ranges"] == (
        "beside: records/0 offset 2: no batch read offsets 2 to 2: batch 0 ends before, batch 3 starts after"
    )


def test_records_that_were_taken_out_of_the_quarantine_are_missed(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    DeltaTable(bench.folder / "warehouse" / "quarantine" / "records").delete()
    assert wrong(bench)[SIDE_TABLES] == (
        "quarantined of records/1, batch 2: the ledger counts 1 records; the table has 0"
    )


def test_a_late_record_that_its_batch_never_read_is_found(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    rewrite(bench, "late/stream", lambda rows: edited(rows, 0, offset=40))
    assert wrong(bench)[SIDE_TABLES] == "late of records/0 offset 40: its batch 4 did not read this offset"


def test_a_batch_that_the_control_store_lost_is_found(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    bench.told[:] = [outcome for outcome in bench.told if outcome.batch_id != 3]
    assert wrong(bench)["agreement"] == "batch 4: follows batch 2 in the control store"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"watermark_ms": 0}, "batch 4: its watermark is before that of batch 3"),
        ({"watermark_ms": None}, "batch 4: has no watermark, but batch 3 has one"),
        ({"watermark_ms": 10**9}, "batch 5: its watermark is before that of batch 4"),
        ({"clock_ms": 10**9}, "batch 5: its time is "),
        ({"panes": {}}, "batch 4: its panes are {} in the control store, but "),
    ],
)
def test_a_moment_that_was_changed_in_the_control_store_is_found(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    scope = scope_of(lived(tmp_path))
    batches = list(scope.batches)
    assert batches[4].batch_id == 4
    batches[4] = dataclasses.replace(batches[4], **changed)
    told = dict(STREAM_CHECKS)["agreement"](dataclasses.replace(scope, batches=batches))
    assert (told.state, told.summary[: len(said)]) == ("failed", said)


@pytest.mark.parametrize(("further", "state"), [(0, "passed"), (1, "failed")])
def test_a_watermark_of_the_last_batch_is_that_of_its_journal(
    tmp_path: Path, further: int, state: str
) -> None:
    scope = scope_of(lived(tmp_path))
    last = scope.batches[-1]
    assert last.watermark_ms is not None
    moved = dataclasses.replace(last, watermark_ms=last.watermark_ms + further)
    told = dict(STREAM_CHECKS)["agreement"](dataclasses.replace(scope, batches=[*scope.batches[:-1], moved]))
    assert told.state == state


def test_what_was_sent_again_without_a_decision_is_found(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    decisions = DecisionLog(tmp_path / "quarantine" / "records.jsonl")
    decisions.record([QuarantineDecision("replayed", 1, 2, 0, "", b"x")])
    assert "quarantine" not in wrong(bench)
    assert verdicts(bench)["quarantine"].summary.startswith("1 quarantined = 0 pending + 1 replaying")
    decisions.record([QuarantineDecision("discarded", 0, 77, 0)])
    assert wrong(bench)["quarantine"] == "records/0 offset 77: discarded, but it is not in quarantine"


@pytest.mark.parametrize(
    ("decided", "wrong"),
    [
        (QuarantineDecision("replayed", 0, 4, 0), False),
        (QuarantineDecision("discarded", 0, 4, 0), False),
        (QuarantineDecision("discarded", 0, 7, 0), False),
        (QuarantineDecision("replayed", 0, 7, 0), True),
        (QuarantineDecision("discarded", 0, 9, 0), True),
        (QuarantineDecision("discarded", 1, 7, 0), True),
    ],
)
def test_a_record_may_be_gone_from_the_quarantine_where_a_replay_began_later_or_took_what_was_given_up(
    decided: QuarantineDecision, wrong: bool
) -> None:
    found = list(check_decisions("records", [], [decided], 0, lambda: {0: (5, 9)}))
    assert bool(found) is wrong


def test_what_a_stream_dropped_before_its_begin_is_not_missed_in_the_quarantine(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    (first,) = {row["offset"] for row in rows_of(bench, "quarantine/records")}
    DecisionLog(tmp_path / "quarantine" / "records.jsonl").record(
        [QuarantineDecision("replayed", 1, first, 0, "", b"x")]
    )
    rewrite(bench, "quarantine/records", lambda rows: rows.slice(0, 0))
    assert "is not in quarantine" in wrong(bench)["quarantine"]
    later = pc.field("partition") == 0
    rewrite(
        bench, "ledger/stream", lambda rows: pa.concat_tables([rows.filter(later), begun(rows, first + 1)])
    )
    assert "quarantine" not in wrong(bench)


def rows_of(bench: Bench, table: str) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = DeltaTable(bench.folder / "warehouse" / table).to_pyarrow_table().to_pylist()
    return rows


def begun(rows: pa.Table, start: int) -> pa.Table:
    """What a ledger tells of partition 1, from an offset on."""
    kept = pc.and_(pc.equal(rows.column("partition"), 1), pc.greater_equal(rows.column("start"), start))
    return rows.filter(kept)


def test_more_cannot_have_been_sent_than_was_decided() -> None:
    (found,) = check_decisions("records", [], [], 3)
    assert str(found) == "records: 3 records were replayed, but only 0 decisions say so"


def test_what_is_committed_while_it_is_audited_is_no_part_of_it(tmp_path: Path) -> None:
    bench = lived(tmp_path)
    bench.told[:] = [outcome for outcome in bench.told if outcome.batch_id <= 2]
    assert wrong(bench) == {}
    assert verdicts(bench)["accounts"].summary.startswith("6 read = ")


def test_a_stream_without_a_batch_has_nothing_to_audit(tmp_path: Path) -> None:
    with pytest.raises(NoBatchesYetError, match="stream has committed no batch"):
        scope_of(Bench(PLAN, tmp_path))


def test_the_ledger_of_the_audit_is_that_of_the_engine() -> None:
    from penstock.quality.audit.account_agreement import ACCOUNT_FIELDS

    assert ["topic", "partition", *ACCOUNT_FIELDS] == LEDGER_SCHEMA.names
