"""Idle partitions and the watermark: when ticks are due, and partitions with unread records."""

from pathlib import Path

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import COLUMNS

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.errors import WriterFencedError
from penstock.engine.plan.sources import PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.stream import count, fixed

HOUR = 3_600_000
MINUTE = 60_000


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(
        WatermarkStrategy(max_out_of_orderness=5_000, idle_after=30_000, advance_when_idle=True), tmp_path
    )


def make_bench(strategy: WatermarkStrategy, folder: Path) -> Bench:
    source = PlanSource("records", TopicOrigin("records"), COLUMNS, "at", strategy)
    stage = Stage("stream", ("records",), fixed(MINUTE), (AggregateOutput("n", count()),), key=("key",),
                  lateness=MINUTE, final_pane="always", sinks=(PaneLog("stream"),))  # fmt: skip
    return Bench(Plan("stream", (source,), (stage,)), folder)


def record(offset: int, at: int, partition: int = 0) -> InputRecord:
    return InputRecord("records", partition, offset, {"key": "a", "at": at, "value": 1, "word": "x"})


def run_due_ticks(engine: BatchEngine) -> list[tuple[int, int]]:
    """Run each tick when it is due. Return the clocks, and the watermark after each."""
    clocks_and_watermarks = []
    while (due_clock := engine.next_due_clock()) != MAX_TIMESTAMP_MS:
        engine.run_tick(due_clock)
        assert engine.last_outcome is not None
        clocks_and_watermarks.append((due_clock, engine.last_outcome.watermark.value))
    return clocks_and_watermarks


def test_windows_of_an_idle_topic_end_when_the_watermark_follows_the_clock(
    bench: Bench,
) -> None:
    engine = bench.open()
    bench.feed(engine, InputBatch(0, 10_000, (record(0, 5_000),)))
    idle_clock, window_end_clock, close_clock = 40_000, MINUTE + 5_000, 2 * MINUTE + 5_000
    assert run_due_ticks(engine) == [
        (clock, clock - 5_000) for clock in (idle_clock, window_end_clock, close_clock)
    ]
    panes = [(row["timing"], row["final"], row["n"]) for row in bench.rows("panes/stream")]
    assert sorted(panes) == [("late", True, 1), ("on_time", False, 1)]


def test_the_watermark_follows_the_clock_when_the_last_partition_is_idle(bench: Bench) -> None:
    engine = bench.open()
    bench.feed(engine, InputBatch(0, 0, (record(0, 5_000), record(0, 7_000, partition=1))))
    bench.feed(engine, InputBatch(1, 50_000, (record(1, 8_000, partition=1),)))
    assert [clock for clock, _ in run_due_ticks(engine)] == [80_000, 2 * MINUTE + 5_000]


def test_idleness_without_effect_schedules_no_tick(tmp_path: Path) -> None:
    bench = make_bench(WatermarkStrategy(idle_after=30_000), tmp_path)
    engine = bench.open()
    bench.feed(engine, InputBatch(0, 10_000, (record(0, 5_000),)))
    assert run_due_ticks(engine) == [(40_000, 5_000)]


@pytest.mark.parametrize("first_step", ["a tick", "records"])
def test_idle_time_restarts_while_a_partition_has_unread_records(bench: Bench, first_step: str) -> None:
    engine = bench.open()
    bench.feed(engine, InputBatch(0, 5_000, (record(0, 5_000), record(0, 5_000, partition=1))))
    engine = bench.open(2)
    assert engine.next_due_clock() < HOUR
    if first_step == "a tick":
        engine.run_tick(HOUR, unread_partitions=["records/0", "records/1"])
        assert engine.last_outcome is not None
        assert engine.last_outcome.watermark.value == 0
    backlog = tuple(record(number, number * MINUTE) for number in range(1, 60))
    bench.feed(engine, InputBatch(1, HOUR, backlog), ["records/0", "records/1"])
    assert engine.last_outcome is not None
    assert engine.last_outcome.watermark.value == 0  # the other partition may have unread records
    assert [(account.read, account.accepted) for account in engine.last_outcome.accounts] == [(59, 59)]
    assert run_due_ticks(engine)[0][0] == HOUR + 30_000


def test_a_repeated_batch_counts_idle_time_from_the_same_clock(bench: Bench) -> None:
    engine = bench.open()
    bench.feed(engine, InputBatch(0, 5_000, (record(0, 5_000),)))
    lease_checks = iter([True, True, False])
    fenced_engine = bench.open(2, lambda: next(lease_checks))
    with pytest.raises(WriterFencedError):
        fenced_engine.run_tick(HOUR, unread_partitions=["records/0"])
    resumed_engine = bench.open(3)
    assert resumed_engine.last_outcome is not None
    assert (resumed_engine.last_outcome.clock, resumed_engine.last_outcome.watermark.value) == (HOUR, 0)
    assert resumed_engine.next_due_clock() == HOUR + 30_000


def test_unread_records_keep_only_their_own_partition_active(bench: Bench) -> None:
    engine = bench.open()
    bench.feed(engine, InputBatch(0, 5_000, (record(0, 5_000), record(0, 20_000, partition=1))))
    engine.run_tick(40_000, unread_partitions=["records/1"])
    assert engine.last_outcome is not None
    assert engine.last_outcome.watermark.value == 15_000
