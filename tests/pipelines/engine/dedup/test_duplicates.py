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
from tests.pipelines.engine.batch.stream_bench import Bench, StoredReading
from tests.pipelines.engine.batch.test_crashes import COLUMNS, Fuse, Killed, burning

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
RULE = Deduplication(("word", "value"), HORIZON)
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
            "records", TopicOrigin("records"), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=5), RULE
        ),
    ),
    (STAGE,),
)
TABLES = ("panes/stream", "latest/stream", "late/stream", "quarantine/records", "ledger/stream")


@dataclass(frozen=True)
class IdentifiedReading(StoredReading):
    """The input of a batch with record ids."""

    again: frozenset[tuple[int, int]] = frozenset()
    rule: Deduplication = RULE

    def read_ids(self) -> pa.Table:
        known = [record for record in self.records if record.error is None]
        known = [record for record in known if None not in (record.fields[name] for name in self.rule.by)]
        fields = [pa.chunked_array([pa.array([r.fields[name] for r in known])]) for name in self.rule.by]
        groups = hash_keys(fields, len(known))
        rows = {
            "_topic": [r.source for r in known],
            "_partition": [r.partition for r in known],
            "_offset": [r.offset for r in known],
            "_id_hi": groups.hi.view("int64"),
            "_id_lo": groups.lo.view("int64"),
            "_expires_at": [r.fields["at"] + self.rule.within for r in known],
        }
        return pa.table(rows, schema=RECORD_IDS_SCHEMA)

    def drop_duplicates(self, repeats: pa.Table) -> "IdentifiedReading":
        columns = (repeats.column(name).to_pylist() for name in ("_partition", "_offset"))
        return replace(self, again=frozenset(zip(*columns, strict=True)))

    def compute_partials(self) -> pa.Table:
        first = [r for r in self.records if (r.partition, r.offset) not in self.again]
        again = [r for r in self.records if (r.partition, r.offset) in self.again]
        found = StoredReading(self.stage, first, self.clock).compute_partials()
        aside = [
            {
                "_topic": r.source,
                "_partition": r.partition,
                "_fate": "duplicate",
                "_counted": 1,
                "_newest": r.fields["at"],
            }
            for r in again
        ]
        return pa.concat_tables([found, pa.Table.from_pylist(aside, schema=found.schema)])

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        first = [r for r in self.records if (r.partition, r.offset) not in self.again]
        return StoredReading(self.stage, first, self.clock).read_late_records(windows)


class RememberingBench(Bench):
    """A stream with deduplication."""

    rule: Deduplication = RULE

    def remembering(self) -> RecordIdStore:
        self.memory = RecordIdStore(self.folder / "stream" / "ids")
        return self.memory

    def reading(self, batch: InputBatch, clock: int) -> IdentifiedReading:
        return IdentifiedReading(self.stage, batch.records, clock, rule=self.rule)


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
            content = {
                "key": draw(st.sampled_from(["a", "b"])),
                "at": max(0, time - draw(st.integers(0, 12))),
                "value": draw(st.sampled_from([1, 2])),
                "word": draw(st.sampled_from(["x", "y", None])),
            }
            error = "malformed" if draw(st.integers(0, 9)) == 0 else None
            records.append(InputRecord("records", partition, offsets[partition], content, error))
            offsets[partition] += 1
        batches.append(InputBatch(number, 100 + number, tuple(records)))
    return batches


def run(bench: Bench, batches: Sequence[InputBatch], fuse: Fuse) -> None:
    """Run the batches on successive hosts, each killed by the fuse, until all are done."""
    epoch = 0
    while True:
        epoch += 1
        try:
            engine = bench.open(epoch, tables=burning(fuse), told=lambda _: fuse.burn())
            done = engine.last_outcome.batch_id if engine.last_outcome is not None else -1
            for batch in batches[done + 1 :]:
                bench.feed(engine, batch)
        except Killed:
            continue
        return


def expected(batches: Sequence[InputBatch]) -> tuple[list[Any], list[Any]]:
    """Return the accounts and panes of the reference."""
    evaluator = Evaluator(PLAN)
    outcomes = [evaluator.run(batch) for batch in batches]
    ledger = [
        (outcome.batch, partition, a.read, a.accepted, a.late, a.quarantined, a.duplicate)
        for outcome in outcomes
        for (_, partition), a in outcome.accounts.items()
    ]
    panes = [
        (pane.batch, *pane.key, int(pane.start), pane.kind, *(value for _, value in pane.values))
        for outcome in outcomes
        for pane in outcome.panes
    ]
    return sorted(ledger), sorted(panes)


def told(bench: Bench) -> tuple[list[Any], list[Any]]:
    """Return the accounts and panes in the tables."""
    counts = ("batch_id", "partition", "read", "accepted", "late", "quarantined", "duplicate")
    ledger = [tuple(row[name] for name in counts) for row in bench.rows("ledger/stream")]
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
    bench = RememberingBench(PLAN, tmp_path_factory.mktemp("calm"))
    run(bench, batches, Fuse(-1))
    assert told(bench) == expected(batches)


@settings(max_examples=scale_examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), steps=st.integers(1, 40))
def test_a_killed_run_drops_the_same_duplicates(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], steps: int
) -> None:
    killed = RememberingBench(PLAN, tmp_path_factory.mktemp("killed"))
    run(killed, batches, Fuse(steps))
    assert told(killed) == expected(batches)


def record(offset: int, at: int, word: str) -> InputRecord:
    return InputRecord("records", 0, offset, {"key": "a", "at": at, "value": 1, "word": word})


def test_ids_expire_when_the_watermark_passes_them(tmp_path: Path) -> None:
    bench = RememberingBench(PLAN, tmp_path)
    engine = bench.open()
    many = 100
    for number in range(many):
        bench.feed(engine, InputBatch(number, 100 + number, (record(number, 3 * number, f"id{number}"),)))
    # Each id is written once, and once more when it goes: never forgotten, they would be 100 and more.
    assert bench.memory.row_count < 80
    bench.feed(engine, InputBatch(many, 500, (record(many, 3 * many, f"id{many - 1}"),)))
    bench.feed(engine, InputBatch(many + 1, 501, (record(many + 1, 3 * many, "id0"),)))
    accounts = {row["batch_id"]: row["duplicate"] for row in bench.rows("ledger/stream")}
    assert (accounts[many], accounts[many + 1]) == (1, 0)


def test_id_files_that_no_outcome_references_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_pruning, "RETAINED_BATCHES", 1)
    bench = RememberingBench(PLAN, tmp_path)
    engine = bench.open()
    for number in range(8):
        bench.feed(engine, InputBatch(number, 100 + number, (record(number, number, f"id{number}"),)))
    assert engine.last_outcome is not None
    needed = {name for each in bench.told[-2:] for name in each.state_files["/ids"]}
    assert sorted(path.name for path in (tmp_path / "stream" / "ids").iterdir()) == sorted(needed)
    bench.feed(engine, InputBatch(8, 500, (record(8, 8, "id7"),)))
    assert bench.rows("ledger/stream")[-1]["duplicate"] == 1
