"""Duplicates are dropped as in the reference, also after kills, and ids expire."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.batch.stream_bench import Bench, InMemoryBatchInput
from tests.pipelines.engine.batch.test_crashes import (
    COLUMNS,
    KillSchedule,
    SimulatedKill,
    make_killable_tables,
)

from penstock.conformance.reference import Evaluator
from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch import history_pruning
from penstock.engine.dedup.duplicates import RECORD_IDS_SCHEMA
from penstock.engine.dedup.id_store import RecordIdStore
from penstock.engine.operators.group_hashes import hash_keys
from penstock.engine.plan.sources import Deduplication, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.stream import after_count, count, fixed, repeatedly, sum_

HORIZON = 15
DEDUPLICATION = Deduplication(("word", "value"), HORIZON)
STAGE = Stage(
    "stream",
    ("records",),
    fixed(10),
    (AggregateOutput("n", count()), AggregateOutput("total", sum_("value"))),
    key=("key",),
    trigger=repeatedly(after_count(1)),
    lateness=20,
    sinks=(PaneLog("stream"), LatestValues("stream")),
)
PLAN = Plan(
    "stream",
    (
        PlanSource(
            "records",
            TopicOrigin("records"),
            COLUMNS,
            "at",
            WatermarkStrategy(max_out_of_orderness=5),
            DEDUPLICATION,
        ),
    ),
    (STAGE,),
)
TABLES = ("panes/stream", "latest/stream", "late/stream", "quarantine/records", "ledger/stream")


@dataclass(frozen=True)
class IdentifiedBatchInput(InMemoryBatchInput):
    """The input of a batch with record ids."""

    duplicates: frozenset[tuple[int, int]] = frozenset()
    rule: Deduplication = DEDUPLICATION

    def read_ids(self) -> pa.Table:
        identified = [record for record in self.records if record.error is None]
        identified = [
            record for record in identified if None not in (record.fields[name] for name in self.rule.by)
        ]
        fields = [pa.chunked_array([pa.array([r.fields[name] for r in identified])]) for name in self.rule.by]
        groups = hash_keys(fields, len(identified))
        rows = {
            "_topic": [r.source for r in identified],
            "_partition": [r.partition for r in identified],
            "_offset": [r.offset for r in identified],
            "_id_hi": groups.hi.view("int64"),
            "_id_lo": groups.lo.view("int64"),
            "_expires_at": [r.fields["at"] + self.rule.within for r in identified],
        }
        return pa.table(rows, schema=RECORD_IDS_SCHEMA)

    def drop_duplicates(self, duplicates: pa.Table) -> "IdentifiedBatchInput":
        columns = (duplicates.column(name).to_pylist() for name in ("_partition", "_offset"))
        return replace(self, duplicates=frozenset(zip(*columns, strict=True)))

    def compute_partials(self) -> pa.Table:
        first_records = [r for r in self.records if (r.partition, r.offset) not in self.duplicates]
        duplicate_records = [r for r in self.records if (r.partition, r.offset) in self.duplicates]
        partials = InMemoryBatchInput(self.stage, first_records, self.clock).compute_partials()
        duplicate_accounts = [
            {
                "_topic": r.source,
                "_partition": r.partition,
                "_fate": "duplicate",
                "_counted": 1,
                "_newest": r.fields["at"],
            }
            for r in duplicate_records
        ]
        return pa.concat_tables([partials, pa.Table.from_pylist(duplicate_accounts, schema=partials.schema)])

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        first_records = [r for r in self.records if (r.partition, r.offset) not in self.duplicates]
        return InMemoryBatchInput(self.stage, first_records, self.clock).read_late_records(windows)


class DeduplicatingBench(Bench):
    """A stream with deduplication."""

    rule: Deduplication = DEDUPLICATION

    def open_id_store(self) -> RecordIdStore:
        self.id_store = RecordIdStore(self.folder / "stream" / "ids")
        return self.id_store

    def make_input(self, batch: InputBatch, clock: int) -> IdentifiedBatchInput:
        return IdentifiedBatchInput(self.stage, batch.records, clock, rule=self.rule)


@st.composite
def histories(draw: st.DrawFn) -> list[InputBatch]:
    """Batches with duplicates, records without an id, and invalid records."""
    offsets = [0, 0]
    batches = []
    time = 0
    for number in range(draw(st.integers(1, 6))):
        records = []
        for _ in range(draw(st.integers(1, 6))):
            partition = draw(st.integers(0, 1))
            time += draw(st.integers(0, 4))
            fields = {
                "key": draw(st.sampled_from(["a", "b"])),
                "at": max(0, time - draw(st.integers(0, 12))),
                "value": draw(st.sampled_from([1, 2])),
                "word": draw(st.sampled_from(["x", "y", None])),
            }
            error = "malformed" if draw(st.integers(0, 9)) == 0 else None
            records.append(InputRecord("records", partition, offsets[partition], fields, error))
            offsets[partition] += 1
        batches.append(InputBatch(number, 100 + number, tuple(records)))
    return batches


def run_batches(bench: Bench, batches: Sequence[InputBatch], kills: KillSchedule) -> None:
    """Run the batches on successive hosts, killed by the schedule, until all are done."""
    epoch = 0
    while True:
        epoch += 1
        try:
            engine = bench.open(
                epoch, make_tables=make_killable_tables(kills), report_outcome=lambda _: kills.count_step()
            )
            last_batch_id = engine.last_outcome.batch_id if engine.last_outcome is not None else -1
            for batch in batches[last_batch_id + 1 :]:
                bench.feed(engine, batch)
        except SimulatedKill:
            continue
        return


def compute_expected(batches: Sequence[InputBatch]) -> tuple[list[Any], list[Any]]:
    """Return the accounts and panes of the reference."""
    evaluator = Evaluator(PLAN)
    outcomes = [evaluator.run(batch) for batch in batches]
    ledger = [
        (
            outcome.batch,
            partition,
            account.read,
            account.accepted,
            account.late,
            account.quarantined,
            account.duplicate,
        )
        for outcome in outcomes
        for (_, partition), account in outcome.accounts.items()
    ]
    panes = [
        (pane.batch, *pane.key, int(pane.start), pane.kind, *(value for _, value in pane.values))
        for outcome in outcomes
        for pane in outcome.panes
    ]
    return sorted(ledger), sorted(panes)


def read_accounts_and_panes(bench: Bench) -> tuple[list[Any], list[Any]]:
    """Return the accounts and panes in the tables."""
    columns = ("batch_id", "partition", "read", "accepted", "late", "quarantined", "duplicate")
    ledger = [tuple(row[name] for name in columns) for row in bench.rows("ledger/stream")]
    panes = [
        (r["batch_id"], r["key"], round(r["window_start"].timestamp() * 1000), r["kind"], r["n"], r["total"])
        for r in bench.rows("panes/stream")
    ]
    return sorted(ledger), sorted(panes)


@settings(max_examples=scale_examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories())
def test_duplicates_are_those_of_the_reference(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch]
) -> None:
    bench = DeduplicatingBench(PLAN, tmp_path_factory.mktemp("undisturbed"))
    run_batches(bench, batches, KillSchedule())
    assert read_accounts_and_panes(bench) == compute_expected(batches)


@settings(max_examples=scale_examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), steps=st.integers(1, 40))
def test_a_killed_run_drops_the_same_duplicates(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], steps: int
) -> None:
    killed = DeduplicatingBench(PLAN, tmp_path_factory.mktemp("killed"))
    run_batches(killed, batches, KillSchedule(steps))
    assert read_accounts_and_panes(killed) == compute_expected(batches)


def record(offset: int, at: int, word: str) -> InputRecord:
    return InputRecord("records", 0, offset, {"key": "a", "at": at, "value": 1, "word": word})


def test_ids_expire_when_the_watermark_passes_them(tmp_path: Path) -> None:
    bench = DeduplicatingBench(PLAN, tmp_path)
    engine = bench.open()
    count = 100
    for number in range(count):
        bench.feed(engine, InputBatch(number, 100 + number, (record(number, 3 * number, f"id{number}"),)))
    # Each id is written once, and once more when it expires. Without expiry there would be 100 or more rows.
    assert bench.id_store.row_count < 80
    bench.feed(engine, InputBatch(count, 500, (record(count, 3 * count, f"id{count - 1}"),)))
    bench.feed(engine, InputBatch(count + 1, 501, (record(count + 1, 3 * count, "id0"),)))
    accounts = {row["batch_id"]: row["duplicate"] for row in bench.rows("ledger/stream")}
    assert (accounts[count], accounts[count + 1]) == (1, 0)


def test_id_files_that_no_outcome_references_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_pruning, "RETAINED_BATCHES", 1)
    bench = DeduplicatingBench(PLAN, tmp_path)
    engine = bench.open()
    for number in range(8):
        bench.feed(engine, InputBatch(number, 100 + number, (record(number, number, f"id{number}"),)))
    assert engine.last_outcome is not None
    needed = {name for each in bench.outcomes[-2:] for name in each.state_files["/ids"]}
    assert sorted(path.name for path in (tmp_path / "stream" / "ids").iterdir()) == sorted(needed)
    bench.feed(engine, InputBatch(8, 500, (record(8, 8, "id7"),)))
    assert bench.rows("ledger/stream")[-1]["duplicate"] == 1
