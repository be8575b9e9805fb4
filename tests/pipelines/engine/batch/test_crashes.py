"""A run that is killed between any two steps and resumed gives the tables of an undisturbed run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.operators.watch_functions import RETURNS, Tally, watch_all

from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.batch.batch_rows import BatchRows
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch_time import BatchTime
from penstock.engine.definition.predicates import Comparison
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import JournalError, WriterFencedError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.plan.joins import Join, JoinColumn, JoinKind
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import SideOutput, StatefulFunction, state_type
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.storage import ObjectStorePath, StoragePath
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths
from penstock.engine.windows.as_of import AsOf
from penstock.engine.windows.between import Between
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.same_windows import SameWindows
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window
from penstock.stream import after_count, after_watermark, count, every, fixed, max_, repeatedly, sum_

COLUMNS = tuple(
    Column(name, kind)
    for name, kind in [("key", "STRING"), ("at", "BIGINT"), ("value", "BIGINT"), ("word", "STRING")]
)


def plan_over(stage: Stage) -> Plan:
    source = PlanSource(
        "records",
        TopicOrigin("records"),
        COLUMNS,
        "at",
        WatermarkStrategy(max_out_of_orderness=5, idle_after=30),
    )
    return Plan("stream", (source,), (stage,))


def of_time(window: Window) -> Plan:
    """A stage with early results every four milliseconds and a lateness of twenty."""
    return plan_over(replace(IN_ORDER, window=window, trigger=after_watermark(early=every(4)), lateness=20,
                             accumulation="retracting"))  # fmt: skip


IN_ORDER = Stage(
    "stream",
    ("records",),
    Tumbling(CountPolicy(2)),
    (
        AggregateOutput("n", count()),
        AggregateOutput("total", sum_("value")),
        AggregateOutput("most", max_("value")),
    ),
    key=("key",),
    sinks=(PaneLog("stream"), LatestValues("stream")),
)
PLAN = of_time(fixed(10))


@dataclass(frozen=True)
class Running:
    """The number of records of a key, and their sum."""

    n: int = 0
    total: int = 0


def running(call: KeyContext[Running]) -> KeyUpdate[Running]:
    """Emit count and sum with each record, and again by a clock timer."""
    now, rows = call.state or Running(), []
    for read in call.records:
        now = Running(now.n + 1, now.total + (read.fields["value"] or 0))
        rows.append(OutputRow(asdict(now), read.time))
    rows += [OutputRow(asdict(now)) for _ in call.due_timers]
    return KeyUpdate(now, rows, [Timer(call.batch_clock + 7, "processing")] if call.records else None)


def parting(call: KeyContext[Running]) -> KeyUpdate[Running]:
    """Emit the count with each record, and the sum of every second one to a side output."""
    told = running(call)
    aside = [OutputRow(row.fields, row.at, "aside") for row in told.rows if row.fields["n"] % 2 == 0]
    return KeyUpdate(told.state, [*told.rows, *aside])


def chained() -> Plan:
    """The greatest totals of all keys, every twenty milliseconds, over the panes of each key."""
    best = (AggregateOutput("best", TopN("total", 2)), AggregateOutput("keys", count()))
    after = Stage("whole", ("stream",), fixed(20), best, trigger=repeatedly(after_count(1)), lateness=20,
                  accumulation="retracting", sinks=(PaneLog("whole"), LatestValues("whole")))  # fmt: skip
    return replace(PLAN, stages=(*PLAN.stages, after))


def side_by_side() -> Plan:
    """A second stage over the same records, with shorter windows and no lateness."""
    beside = Stage("beside", ("records",), fixed(5), (AggregateOutput("n", count()),),
                   trigger=repeatedly(after_count(1)),
                   sinks=(PaneLog("beside"), LatestValues("beside")))  # fmt: skip
    return replace(PLAN, stages=(*PLAN.stages, beside))


def joined() -> Plan:
    """A join of the greatest value of a key with its count, in the windows of both."""
    alike = {
        "key": ("key",),
        "trigger": repeatedly(after_count(1)),
        "lateness": 20,
        "accumulation": "retracting",
    }
    sides = [
        Stage(name, ("records",), fixed(10), (AggregateOutput("found", of),), sinks=(PaneLog(name),), **alike)
        for name, of in (("stream", max_("value")), ("many", count("value")))
    ]
    join = Join(
        "full", "stream", "many", (JoinColumn("most", "stream", "found"), JoinColumn("many", "many", "found"))
    )
    of = tuple(
        AggregateOutput(side, JoinMembers(name, ("found",)))
        for side, name in (("left", "stream"), ("right", "many"))
    )
    met = Stage("met", ("stream", "many"), SameWindows(), of, join=join, sinks=(PaneLog("met"),), **alike)
    return replace(PLAN, stages=(*sides, met))


def paired(window: JoinWindow, kind: JoinKind) -> Plan:
    """An unwindowed join of two topics, and a count of its rows in windows."""
    columns = (JoinColumn("value", "clicks", "value"), JoinColumn("other", "views", "value"))
    join = Join(kind, "clicks", "views", columns)
    of = tuple(AggregateOutput(name, JoinMembers(name, ("value",))) for name in ("clicks", "views"))
    near = Stage("stream", ("clicks", "views"), window, of, key=("key",), join=join, lateness=4,
                 sinks=(PaneLog("stream"),))  # fmt: skip
    many = (AggregateOutput("rows", count()), AggregateOutput("most", max_("other")))
    counted = Stage("counted", ("stream",), fixed(10), many, key=("key",), trigger=repeatedly(after_count(1)),
                    lateness=30, accumulation="retracting", sinks=(PaneLog("counted"),))  # fmt: skip
    (read,) = PLAN.sources
    sources = tuple(replace(read, name=name, origin=TopicOrigin(name)) for name in ("clicks", "views"))
    return validate_plan(Plan("stream", sources, (near, counted)))


PLANS = {
    "a join": joined(),
    "near records": paired(Between(2, 9), "full"),
    "as of a time": paired(AsOf(20, Comparison("value", "=", 1)), "left"),
    "fixed": PLAN,
    "side by side": side_by_side(),
    "sessions": of_time(Sessions(8)),
    "two stages": chained(),
    "remembering": plan_over(
        replace(
            IN_ORDER,
            aggregates=(),
            sinks=(PaneLog("stream"),),
            window=StatefulFunction(
                function_ref(running),
                state_type(Running),
                (Column("n", "BIGINT"), Column("total", "BIGINT")),
                clock=True,
            ),
        )
    ),
    "at once": plan_over(
        replace(
            IN_ORDER,
            aggregates=(),
            sinks=(PaneLog("stream"),),
            window=StatefulFunction(
                function_ref(watch_all), state_type(Tally), RETURNS, vectorized=True, clock=True
            ),
        )
    ),
    "several outputs": plan_over(
        replace(
            IN_ORDER,
            aggregates=(),
            sinks=(PaneLog("stream"), PaneLog("aside", "aside")),
            window=StatefulFunction(
                function_ref(parting),
                state_type(Running),
                (Column("n", "BIGINT"),),
                clock=True,
                outputs=(SideOutput("aside", (Column("total", "BIGINT"),)),),
            ),
        )
    ),
    "by the clock": of_time(Fixed(10, time="processing")),
    "by count": plan_over(IN_ORDER),
    "last records": plan_over(replace(IN_ORDER, window=SlidingOrder(CountPolicy(3), CountPolicy(1)))),
}
TABLES = ("panes/stream", "latest/stream", "late/stream", "quarantine/records", "ledger/stream")


class Killed(BaseException):
    """The process was killed."""


class Fuse:
    """Kills at the n-th step, then at the m-th step after it, and so on."""

    def __init__(self, steps: int, *more: int) -> None:
        self.left, self.more = steps, list(more)

    def burn(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.left = self.more.pop(0) if self.more else -1
            raise Killed


class BurningTables(StreamTables):
    """Tables that may be killed between their writes and commits."""

    fuse: Fuse

    def write(self, rows: BatchRows, moment: BatchTime) -> dict[str, TableChange]:
        self.fuse.burn()
        changes = super().write(rows, moment)
        self.fuse.burn()
        return changes

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        for path, change in changes.items():
            self.fuse.burn()
            super().commit(batch_id, {path: change}, clock)
        self.fuse.burn()


def burning(fuse: Fuse) -> Any:
    def make(plan: Plan, graph: CompiledGraph, warehouse: StoragePath) -> StreamTables:
        tables = BurningTables(plan, graph, warehouse)
        tables.fuse = fuse
        return tables

    return make


def history() -> list[InputBatch]:
    """Batches of two partitions with late and invalid records, and ticks between them."""

    def record(
        partition: int, offset: int, key: str, at: int, value: int | None, error: str | None = None
    ) -> InputRecord:
        return InputRecord(
            "records", partition, offset, {"key": key, "at": at, "value": value, "word": None}, error
        )

    return [
        InputBatch(0, 100, (record(0, 0, "a", 3, 5), record(0, 1, "b", 4, 1), record(1, 0, "a", 7, None))),
        InputBatch(1, 104, ()),
        InputBatch(
            2, 106, (record(0, 2, "a", 14, 2), record(1, 1, "c", 12, 9), record(1, 2, "c", 1, 1, "malformed"))
        ),
        InputBatch(3, 109, (record(0, 3, "a", 48, 2), record(1, 3, "c", 47, 9))),
        InputBatch(4, 112, (record(0, 4, "a", 2, 7), record(1, 4, "a", 33, 1))),
        InputBatch(5, 150, ()),
    ]


def run(bench: Bench, fuse: Fuse, batches: list[InputBatch] | None = None) -> None:
    """Run the batches on successive hosts, each killed by the fuse, until all are done."""
    batches = history() if batches is None else batches
    numbers = {batch.id: spark for spark, batch in enumerate(b for b in batches if b.records)}
    epoch = 0
    while True:
        epoch += 1
        try:
            engine = bench.open(epoch, tables=burning(fuse), told=lambda _: fuse.burn())
            done = engine.last_outcome.batch_id if engine.last_outcome is not None else -1
            for batch in batches[done + 1 :]:
                spark = numbers.get(batch.id, 0)
                bench.feed(engine, InputBatch(spark, batch.clock, batch.records))
        except Killed:
            continue
        return


@settings(max_examples=scale_examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted(PLANS)), steps=st.integers(1, 60))
def test_a_killed_run_gives_the_tables_of_an_undisturbed_run(
    tmp_path_factory: pytest.TempPathFactory, name: str, steps: int
) -> None:
    calm = Bench(PLANS[name], tmp_path_factory.mktemp("calm"))
    run(calm, Fuse(-1))
    killed = Bench(PLANS[name], tmp_path_factory.mktemp("killed"))
    run(killed, Fuse(steps))
    for table in [*list_owned_paths(PLANS[name]), *list_quarantine_paths(PLANS[name])]:
        assert killed.rows(table) == calm.rows(table), table


@pytest.mark.parametrize("steps", [4, 9, 17])
def test_a_killed_run_in_an_object_store_gives_the_same_tables(
    tmp_path: Path, bucket: ObjectStorePath, steps: int
) -> None:
    plan = PLANS["two stages"]
    calm, killed = Bench(plan, tmp_path / "calm"), Bench(plan, tmp_path / "killed", elsewhere=bucket)
    run(calm, Fuse(-1))
    run(killed, Fuse(steps))
    for table in [*list_owned_paths(plan), *list_quarantine_paths(plan)]:
        assert killed.rows(table) == calm.rows(table), table
    assert not (tmp_path / "killed" / "warehouse").exists()


def test_the_ledger_of_each_batch_is_balanced(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    run(bench, Fuse(-1))
    ledger = bench.rows("ledger/stream")
    assert [(row["read"], row["accepted"], row["late"], row["quarantined"]) for row in ledger] != []
    for row in ledger:
        assert row["read"] == row["end"] - row["start"]
        assert row["read"] == row["accepted"] + row["late"] + row["quarantined"]
    assert sum(row["late"] for row in ledger) == len(bench.rows("late/stream")) == 1
    assert sum(row["quarantined"] for row in ledger) == len(bench.rows("quarantine/records")) == 1


def test_a_fenced_host_writes_nothing_more(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, *rest = history()
    holds = [True]
    old = bench.open(epoch=1, holds=lambda: holds[0])
    bench.feed(old, first)
    new = bench.open(epoch=2)
    before = {table: bench.rows(table) for table in TABLES}
    holds[0] = False
    with pytest.raises(WriterFencedError, match="another host took it over"):
        bench.feed(old, InputBatch(1, 106, rest[1].records))
    assert {table: bench.rows(table) for table in TABLES} == before
    bench.feed(new, InputBatch(1, 106, rest[1].records))
    assert new.last_outcome is not None
    assert new.last_outcome.epoch == 2


def test_a_host_stops_at_an_intent_of_a_newer_epoch(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, _, third, *_ = history()
    old = bench.open(epoch=1)
    bench.feed(old, first)
    new = bench.open(epoch=2)
    bench.feed(new, InputBatch(1, 106, third.records))
    with pytest.raises(WriterFencedError):
        bench.feed(old, InputBatch(1, 107, third.records))
    assert sorted(row["batch_id"] for row in bench.rows("ledger/stream")) == [0, 0, 1, 1]


def test_a_tick_does_not_overtake_a_started_batch(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, _, third, *_ = history()
    bench.feed(bench.open(epoch=1), first)
    fuse = Fuse(-1)
    killed = bench.open(epoch=2, tables=burning(fuse))
    fuse.left = 1
    with pytest.raises(Killed):
        bench.feed(killed, InputBatch(1, 106, third.records))
    resumed = bench.open(epoch=3)
    assert resumed.next_due_clock() == MAX_TIMESTAMP_MS
    resumed.run_tick(300)
    assert resumed.last_outcome is not None
    assert resumed.last_outcome.batch_id == 0
    bench.feed(resumed, InputBatch(1, 301, third.records))
    assert (resumed.last_outcome.batch_id, resumed.last_outcome.clock, resumed.last_outcome.kind) == (
        1,
        106,
        "data",
    )
    assert resumed.next_due_clock() < MAX_TIMESTAMP_MS


def test_records_with_an_offset_gap_are_refused(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, _, third, fourth, *_ = history()
    engine = bench.open()
    bench.feed(engine, first)
    with pytest.raises(JournalError, match="records/0 was read up to 2, and batch 1 starts at 3"):
        bench.feed(engine, InputBatch(1, 109, fourth.records))
    bench.feed(engine, InputBatch(1, 109, third.records))
    with pytest.raises(JournalError, match="was read up to 3, and batch 2 starts at 2"):
        bench.feed(engine, InputBatch(2, 110, third.records))
