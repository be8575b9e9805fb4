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
from tests.pipelines.engine.operators.watch_functions import RETURNS, RecordTally, watch_vectorized

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


def plan_of_stage(stage: Stage) -> Plan:
    source = PlanSource(
        "records",
        TopicOrigin("records"),
        COLUMNS,
        "at",
        WatermarkStrategy(max_out_of_orderness=5, idle_after=30),
    )
    return Plan("stream", (source,), (stage,))


def make_window_plan(window: Window) -> Plan:
    """A stage with early results every four milliseconds and a lateness of twenty."""
    trigger = after_watermark(early=every(4))
    return plan_of_stage(
        replace(COUNT_WINDOW_STAGE, window=window, trigger=trigger, lateness=20, accumulation="retracting")
    )


COUNT_WINDOW_STAGE = Stage(
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
PLAN = make_window_plan(fixed(10))


@dataclass(frozen=True)
class RunningTotal:
    """The number of records of a key, and their sum."""

    n: int = 0
    total: int = 0


def emit_running_total(call: KeyContext[RunningTotal]) -> KeyUpdate[RunningTotal]:
    """Emit count and sum with each record, and again by a clock timer."""
    total_so_far, rows = call.state or RunningTotal(), []
    for read in call.records:
        total_so_far = RunningTotal(total_so_far.n + 1, total_so_far.total + (read.fields["value"] or 0))
        rows.append(OutputRow(asdict(total_so_far), read.time))
    rows += [OutputRow(asdict(total_so_far)) for _ in call.due_timers]
    return KeyUpdate(
        total_so_far, rows, [Timer(call.batch_clock + 7, "processing")] if call.records else None
    )


def emit_even_counts_aside(call: KeyContext[RunningTotal]) -> KeyUpdate[RunningTotal]:
    """Emit the count with each record, and the sum of every second one to a side output."""
    update = emit_running_total(call)
    even_rows = [
        OutputRow(row.fields, row.at, "even_counts") for row in update.rows if row.fields["n"] % 2 == 0
    ]
    return KeyUpdate(update.state, [*update.rows, *even_rows])


def make_chained_plan() -> Plan:
    """The greatest totals of all keys, every twenty milliseconds, over the panes of each key."""
    aggregates = (AggregateOutput("best", TopN("total", 2)), AggregateOutput("keys", count()))
    all_keys_stage = Stage("whole", ("stream",), fixed(20), aggregates, trigger=repeatedly(after_count(1)),
                           lateness=20, accumulation="retracting",
                           sinks=(PaneLog("whole"), LatestValues("whole")))  # fmt: skip
    return replace(PLAN, stages=(*PLAN.stages, all_keys_stage))


def make_parallel_plan() -> Plan:
    """A second stage over the same records, with shorter windows and no lateness."""
    parallel_stage = Stage("beside", ("records",), fixed(5), (AggregateOutput("n", count()),),
                           trigger=repeatedly(after_count(1)),
                           sinks=(PaneLog("beside"), LatestValues("beside")))  # fmt: skip
    return replace(PLAN, stages=(*PLAN.stages, parallel_stage))


def make_window_join_plan() -> Plan:
    """A join of the greatest value of a key with its count, in the windows of both."""
    options = {
        "key": ("key",),
        "trigger": repeatedly(after_count(1)),
        "lateness": 20,
        "accumulation": "retracting",
    }
    upstream_stages = [
        Stage(
            name,
            ("records",),
            fixed(10),
            (AggregateOutput("value", aggregate),),
            sinks=(PaneLog(name),),
            **options,
        )
        for name, aggregate in (("stream", max_("value")), ("counted", count("value")))
    ]
    join = Join(
        "full",
        "stream",
        "counted",
        (JoinColumn("most", "stream", "value"), JoinColumn("counted", "counted", "value")),
    )
    members = tuple(
        AggregateOutput(side, JoinMembers(name, ("value",)))
        for side, name in (("left", "stream"), ("right", "counted"))
    )
    joined_stage = Stage(
        "joined",
        ("stream", "counted"),
        SameWindows(),
        members,
        join=join,
        sinks=(PaneLog("joined"),),
        **options,
    )
    return replace(PLAN, stages=(*upstream_stages, joined_stage))


def make_unwindowed_join_plan(window: JoinWindow, kind: JoinKind) -> Plan:
    """An unwindowed join of two topics, and a count of its rows in windows."""
    columns = (JoinColumn("value", "clicks", "value"), JoinColumn("other", "views", "value"))
    join = Join(kind, "clicks", "views", columns)
    members = tuple(AggregateOutput(name, JoinMembers(name, ("value",))) for name in ("clicks", "views"))
    join_stage = Stage("stream", ("clicks", "views"), window, members, key=("key",), join=join, lateness=4,
                       sinks=(PaneLog("stream"),))  # fmt: skip
    aggregates = (AggregateOutput("rows", count()), AggregateOutput("most", max_("other")))
    count_stage = Stage("counted", ("stream",), fixed(10), aggregates, key=("key",),
                        trigger=repeatedly(after_count(1)), lateness=30, accumulation="retracting",
                        sinks=(PaneLog("counted"),))  # fmt: skip
    (source,) = PLAN.sources
    sources = tuple(replace(source, name=name, origin=TopicOrigin(name)) for name in ("clicks", "views"))
    return validate_plan(Plan("stream", sources, (join_stage, count_stage)))


PLANS = {
    "window join": make_window_join_plan(),
    "interval join": make_unwindowed_join_plan(Between(2, 9), "full"),
    "as-of join": make_unwindowed_join_plan(AsOf(20, Comparison("value", "=", 1)), "left"),
    "fixed": PLAN,
    "parallel stages": make_parallel_plan(),
    "sessions": make_window_plan(Sessions(8)),
    "two stages": make_chained_plan(),
    "stateful function": plan_of_stage(
        replace(
            COUNT_WINDOW_STAGE,
            aggregates=(),
            sinks=(PaneLog("stream"),),
            window=StatefulFunction(
                function_ref(emit_running_total),
                state_type(RunningTotal),
                (Column("n", "BIGINT"), Column("total", "BIGINT")),
                clock=True,
            ),
        )
    ),
    "vectorized function": plan_of_stage(
        replace(
            COUNT_WINDOW_STAGE,
            aggregates=(),
            sinks=(PaneLog("stream"),),
            window=StatefulFunction(
                function_ref(watch_vectorized), state_type(RecordTally), RETURNS, vectorized=True, clock=True
            ),
        )
    ),
    "side outputs": plan_of_stage(
        replace(
            COUNT_WINDOW_STAGE,
            aggregates=(),
            sinks=(PaneLog("stream"), PaneLog("even_counts", "even_counts")),
            window=StatefulFunction(
                function_ref(emit_even_counts_aside),
                state_type(RunningTotal),
                (Column("n", "BIGINT"),),
                clock=True,
                outputs=(SideOutput("even_counts", (Column("total", "BIGINT"),)),),
            ),
        )
    ),
    "processing time": make_window_plan(Fixed(10, time="processing")),
    "count windows": plan_of_stage(COUNT_WINDOW_STAGE),
    "sliding count windows": plan_of_stage(
        replace(COUNT_WINDOW_STAGE, window=SlidingOrder(CountPolicy(3), CountPolicy(1)))
    ),
}
TABLES = ("panes/stream", "latest/stream", "late/stream", "quarantine/records", "ledger/stream")


class SimulatedKill(BaseException):
    """The process was killed."""


class KillSchedule:
    """Kills at the n-th step, then at the m-th step after it, and so on. By default it never kills."""

    def __init__(self, steps: int = -1, *later_steps: int) -> None:
        self.steps_left, self.later_steps = steps, list(later_steps)

    def count_step(self) -> None:
        self.steps_left -= 1
        if self.steps_left == 0:
            self.steps_left = self.later_steps.pop(0) if self.later_steps else -1
            raise SimulatedKill


class KillableTables(StreamTables):
    """Tables that may be killed between their writes and commits."""

    kills: KillSchedule

    def write(self, rows: BatchRows, batch_time: BatchTime) -> dict[str, TableChange]:
        self.kills.count_step()
        changes = super().write(rows, batch_time)
        self.kills.count_step()
        return changes

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        for path, change in changes.items():
            self.kills.count_step()
            super().commit(batch_id, {path: change}, clock)
        self.kills.count_step()


def make_killable_tables(kills: KillSchedule) -> Any:
    def make_tables(plan: Plan, graph: CompiledGraph, warehouse: StoragePath) -> StreamTables:
        tables = KillableTables(plan, graph, warehouse)
        tables.kills = kills
        return tables

    return make_tables


def make_batches() -> list[InputBatch]:
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


def run_batches(
    bench: Bench, kills: KillSchedule | None = None, batches: list[InputBatch] | None = None
) -> None:
    """Run the batches on successive hosts, killed by the schedule, until all are done."""
    kills = kills or KillSchedule()
    batches = make_batches() if batches is None else batches
    spark_batch_ids = {
        batch.id: spark_batch_id for spark_batch_id, batch in enumerate(b for b in batches if b.records)
    }
    epoch = 0
    while True:
        epoch += 1
        try:
            engine = bench.open(
                epoch, make_tables=make_killable_tables(kills), report_outcome=lambda _: kills.count_step()
            )
            last_batch_id = engine.last_outcome.batch_id if engine.last_outcome is not None else -1
            for batch in batches[last_batch_id + 1 :]:
                spark_batch_id = spark_batch_ids.get(batch.id, 0)
                bench.feed(engine, InputBatch(spark_batch_id, batch.clock, batch.records))
        except SimulatedKill:
            continue
        return


@settings(max_examples=scale_examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted(PLANS)), steps=st.integers(1, 60))
def test_a_killed_run_gives_the_tables_of_an_undisturbed_run(
    tmp_path_factory: pytest.TempPathFactory, name: str, steps: int
) -> None:
    undisturbed = Bench(PLANS[name], tmp_path_factory.mktemp("undisturbed"))
    run_batches(undisturbed)
    killed = Bench(PLANS[name], tmp_path_factory.mktemp("killed"))
    run_batches(killed, KillSchedule(steps))
    for table in [*list_owned_paths(PLANS[name]), *list_quarantine_paths(PLANS[name])]:
        assert killed.rows(table) == undisturbed.rows(table), table


@pytest.mark.parametrize("steps", [4, 9, 17])
def test_a_killed_run_in_an_object_store_gives_the_same_tables(
    tmp_path: Path, bucket: ObjectStorePath, steps: int
) -> None:
    plan = PLANS["two stages"]
    undisturbed, killed = (
        Bench(plan, tmp_path / "undisturbed"),
        Bench(plan, tmp_path / "killed", table_root=bucket),
    )
    run_batches(undisturbed)
    run_batches(killed, KillSchedule(steps))
    for table in [*list_owned_paths(plan), *list_quarantine_paths(plan)]:
        assert killed.rows(table) == undisturbed.rows(table), table
    assert not (tmp_path / "killed" / "warehouse").exists()


def test_the_ledger_of_each_batch_is_balanced(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    run_batches(bench)
    ledger = bench.rows("ledger/stream")
    assert [(row["read"], row["accepted"], row["late"], row["quarantined"]) for row in ledger] != []
    for row in ledger:
        assert row["read"] == row["end"] - row["start"]
        assert row["read"] == row["accepted"] + row["late"] + row["quarantined"]
    assert sum(row["late"] for row in ledger) == len(bench.rows("late/stream")) == 1
    assert sum(row["quarantined"] for row in ledger) == len(bench.rows("quarantine/records")) == 1


def test_a_fenced_host_writes_nothing_more(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, *other_batches = make_batches()
    is_held = [True]
    fenced_engine = bench.open(epoch=1, is_held=lambda: is_held[0])
    bench.feed(fenced_engine, first)
    successor = bench.open(epoch=2)
    rows_before = {table: bench.rows(table) for table in TABLES}
    is_held[0] = False
    with pytest.raises(WriterFencedError, match="another host took it over"):
        bench.feed(fenced_engine, InputBatch(1, 106, other_batches[1].records))
    assert {table: bench.rows(table) for table in TABLES} == rows_before
    bench.feed(successor, InputBatch(1, 106, other_batches[1].records))
    assert successor.last_outcome is not None
    assert successor.last_outcome.epoch == 2


def test_a_host_stops_at_an_intent_of_a_newer_epoch(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, _, third, *_ = make_batches()
    fenced_engine = bench.open(epoch=1)
    bench.feed(fenced_engine, first)
    successor = bench.open(epoch=2)
    bench.feed(successor, InputBatch(1, 106, third.records))
    with pytest.raises(WriterFencedError):
        bench.feed(fenced_engine, InputBatch(1, 107, third.records))
    assert sorted(row["batch_id"] for row in bench.rows("ledger/stream")) == [0, 0, 1, 1]


def test_a_tick_does_not_overtake_a_started_batch(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, _, third, *_ = make_batches()
    bench.feed(bench.open(epoch=1), first)
    kills = KillSchedule()
    killed_engine = bench.open(epoch=2, make_tables=make_killable_tables(kills))
    kills.steps_left = 1
    with pytest.raises(SimulatedKill):
        bench.feed(killed_engine, InputBatch(1, 106, third.records))
    resumed_engine = bench.open(epoch=3)
    assert resumed_engine.next_due_clock() == MAX_TIMESTAMP_MS
    resumed_engine.run_tick(300)
    assert resumed_engine.last_outcome is not None
    assert resumed_engine.last_outcome.batch_id == 0
    bench.feed(resumed_engine, InputBatch(1, 301, third.records))
    assert (
        resumed_engine.last_outcome.batch_id,
        resumed_engine.last_outcome.clock,
        resumed_engine.last_outcome.kind,
    ) == (
        1,
        106,
        "data",
    )
    assert resumed_engine.next_due_clock() < MAX_TIMESTAMP_MS


def test_records_with_an_offset_gap_are_refused(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    first, _, third, fourth, *_ = make_batches()
    engine = bench.open()
    bench.feed(engine, first)
    with pytest.raises(JournalError, match="records/0 was read up to 2, and batch 1 starts at 3"):
        bench.feed(engine, InputBatch(1, 109, fourth.records))
    bench.feed(engine, InputBatch(1, 109, third.records))
    with pytest.raises(JournalError, match="was read up to 3, and batch 2 starts at 2"):
        bench.feed(engine, InputBatch(2, 110, third.records))
