"""Results that depend on how records were cut into batches: the recorded batches give them again, row for row."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.spark.running import Running, send
from tests.pipelines.engine.spark.test_chains import plan_over as three_stages
from tests.pipelines.engine.spark.test_stream import COLUMNS, readings
from tests.quality.audit.scopes import scope_of

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.plan import (
    AggregateOutput,
    Column,
    Deduplication,
    Fixed,
    Join,
    JoinColumn,
    Plan,
    PlanSource,
    Sessions,
    Sliding,
    SqlStep,
    Stage,
    StatefulFunction,
    TimePolicy,
    TopicOrigin,
    Tumbling,
    WatermarkStrategy,
    function_ref,
    state_type,
    validate_plan,
)
from penstock.engine.sinks.final_panes import FinalPanes
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.comparability import Sample, explain_batch_dependence
from penstock.quality.audit.recompute_check import check_recomputed_results
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import AuditVerdict
from penstock.stream import after_count, after_watermark, collect, count, every, first, repeatedly, sum_
from penstock.stream.join_columns import join_member_outputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
TOPIC, OTHER, BEGAN, PARTS, OF_EACH = "rerun", "rerun-beside", 1_000_000, 2, 150
WHOLE = Sample()


@dataclass(frozen=True)
class Calls:
    """How often a key was called."""

    number: int = 0


def calls(call: KeyContext[Calls]) -> KeyUpdate[Calls]:
    """Tell of every call how many records it had, and of every timer: other cuts would give other rows."""
    now = Calls((call.state or Calls()).number + 1)
    rows = [
        OutputRow({"number": now.number, "had": len(call.records)}),
        *(OutputRow({"number": -1}) for _ in call.due_timers),
    ]
    return KeyUpdate(now, rows, [Timer(call.batch_clock + 5_000, "processing")] if call.records else None)


TOTALS = (
    AggregateOutput("n", count()),
    AggregateOutput("total", sum_("temperature")),
    AggregateOutput("came_by", first("temperature")),
    AggregateOutput("all", collect("temperature")),
)


RULE = WatermarkStrategy(1_000)


def plan_of(name: str, rule: WatermarkStrategy = RULE, **answers: Any) -> Plan:
    sinks = (PaneLog(name), LatestValues(name), FinalPanes(name))
    stage = Stage(name, (TOPIC,), **{"aggregates": TOTALS, "key": ("device",), "sinks": sinks, **answers})
    return Plan(name, (PlanSource(TOPIC, TopicOrigin(TOPIC), COLUMNS, "at", rule),), (stage,))


def repeats_forgotten() -> Plan:
    plan = plan_of(
        "forgotten", window=Fixed(10_000), lateness=30_000, trigger=after_watermark(early=every(2_000))
    )
    source = replace(plan.sources[0], deduplication=Deduplication(("device", "temperature"), 5_000))
    return replace(plan, sources=(source,))


def two_beginnings() -> Plan:
    """Two stages that read the same records, one of them not all, in one pass."""
    every_window = plan_of("apart", window=Fixed(10_000), lateness=5_000)
    cold = plan_of("cold", window=Sliding(20_000, 10_000), steps=COLD, accumulation="retracting")
    return replace(every_window, stages=(every_window.only_stage, cold.only_stage))


def joined() -> Plan:
    """Pairs of the readings of two topics: a window of a device has many."""
    columns = JoinColumn("here", TOPIC, "temperature"), JoinColumn("there", OTHER, "temperature")
    join = Join("full", TOPIC, OTHER, columns)
    plan = plan_of(
        "pairs", window=Fixed(10_000), lateness=5_000, join=join, aggregates=join_member_outputs(join)
    )
    stage = replace(plan.only_stage, inputs=(TOPIC, OTHER), sinks=(PaneLog("pairs"),))
    other = replace(plan.sources[0], name=OTHER, origin=TopicOrigin(OTHER))
    return validate_plan(replace(plan, sources=(*plan.sources, other), stages=(stage,)))


COLD = (SqlStep("SELECT * FROM input WHERE temperature IS NULL OR temperature < 30"),)
RETURNS = (Column("number", "BIGINT"), Column("had", "BIGINT"))
CALLED = StatefulFunction(function_ref(calls), state_type(Calls), RETURNS, clock=True)
EARLY = after_watermark(early=after_count(7), late=repeatedly(after_count(3)))
PLANS = [
    plan_of("called", window=CALLED, aggregates=(), sinks=(PaneLog("called"),)),
    plan_of("clocked", window=Fixed(60_000, time="processing"), trigger=after_watermark(early=every(10_000)),
            accumulation="retracting"),
    plan_of("timed", window=Tumbling(TimePolicy(40_000))),
    plan_of("in_parts", window=Sliding(20_000, 10_000), trigger=EARLY, lateness=5_000, accumulation="discarding",
            steps=COLD, rule=WatermarkStrategy(1_000, max_future_skew=100_000, future_records="accept")),
    plan_of("unshown", window=Sessions(5_000), trigger=repeatedly(after_count(2)), lateness=4_000),
    repeats_forgotten(),
    replace(three_stages(TOPIC), name="stages"),
    two_beginnings(),
    joined(),
]  # fmt: skip


@pytest.fixture(scope="module")
def lived(
    spark: "SparkSession", broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Running]:
    """Every plan over one topic, at the same time: read in parts, with pauses in which clocks and timers go on.

    One reads another topic as well, which holds the same.
    """
    for topic in (TOPIC, OTHER):
        broker.create_topic(topic, 2)
    folder = tmp_path_factory.mktemp("rerun")
    streams = {plan.name: Running(plan, spark, broker, folder / plan.name, clock=BEGAN) for plan in PLANS}
    for part in range(PARTS):
        sent = readings(OF_EACH, seed=part)
        for partition in (0, 1):
            mine = [record for record in sent if int(record["device"][1:]) % 2 == partition]
            for topic in (TOPIC, OTHER):
                send(broker, topic, [*mine, b"no record"], partition)
        started = [(running, running.start()) for running in streams.values()]
        try:
            for running, stream in started:
                of_each = (OF_EACH + 2) * len(running.plan.sources)
                running.progress.wait_for((part + 1) * of_each, stream)
        finally:
            for _, stream in started:
                stream.drain()
        for running in streams.values():
            running.clock += 45_000
    for name in ("called", "clocked"):
        ticked(streams[name])
    return streams


def ticked(running: Running) -> None:
    """Let the clock bring what it brings."""
    stream = running.start()
    try:
        with running.progress.changed:
            assert running.progress.changed.wait_for(lambda: running.progress.outcomes[-1].kind == "tick", 90)
    finally:
        stream.drain()


def verdict(running: Running, sample: Sample = WHOLE, **changes: Any) -> AuditVerdict:
    scope = replace(scope_of(running, BEGAN), **changes)
    return check_recomputed_results(scope, {topic: TopicView(scope, topic) for topic in scope.topics}, sample)


@pytest.mark.parametrize("plan", PLANS, ids=[plan.name for plan in PLANS])
def test_every_pane_comes_again_row_for_row(lived: Mapping[str, Running], plan: Plan) -> None:
    running = lived[plan.name]
    assert explain_batch_dependence(running.plan)
    told = verdict(running)
    assert told.state == "passed", told
    rows, batches = int(told.summary.split()[0].replace(",", "")), len(running.progress.outcomes)
    assert rows > 0
    assert told.summary.endswith(f"match {batches} re-executed batches")


def test_an_edited_pane_is_found_with_its_batch_and_place(
    lived: Mapping[str, Running], tmp_path: Path
) -> None:
    running = lived["called"]
    table = DeltaTable(running.folder / "warehouse" / "panes" / "called")
    version = table.version()
    table.update({"had": "had + 1"}, predicate="device = 'd3' AND number = 2")
    try:
        told = verdict(running)
    finally:
        DeltaTable(table.table_uri).restore(version)
    assert told.state == "failed"
    assert "device d3" in told.differences[0].location
    assert "had is" in told.differences[0].description


def test_one_of_many_pairs_in_a_window_is_named_by_all_that_it_joins(lived: Mapping[str, Running]) -> None:
    running = lived["pairs"]
    table = DeltaTable(running.folder / "warehouse" / "panes" / "pairs")
    version, pairs = table.version(), table.to_pyarrow_table().to_pylist()
    told_apart = ("batch_id", "device", "window_start", "here", "there")
    named = Counter(tuple(row[name] for name in told_apart) for row in pairs)
    windows = Counter((row["device"], row["window_start"]) for row in pairs)
    one = next(
        row
        for row in pairs
        if None not in (row["here"], row["there"])
        and named[tuple(row[name] for name in told_apart)] == 1
        and windows[row["device"], row["window_start"]] > 1
    )
    at = one["window_start"].isoformat()
    same = f"device = '{one['device']}' AND here = {one['here']} AND there = {one['there']}"
    edited = table.update({"here": "here + 1000"}, predicate=f"{same} AND window_start = '{at}'")
    try:
        told = verdict(running)
    finally:
        DeltaTable(table.table_uri).restore(version)
    assert edited["num_updated_rows"] == 1
    strange = f"here {one['here'] + 1000}, there {one['there']}, copy 0"
    gone = f"here {one['here']}, there {one['there']}, copy 0"
    assert {(each.location.partition("kind insert, ")[2], each.description) for each in told.differences} == {
        (strange, "in the table, but not in the recomputed results"),
        (gone, "missing from the table"),
    }


def test_a_sample_of_keys_is_run_again_alone(lived: Mapping[str, Running]) -> None:
    taken, of = (verdict(lived["clocked"], sample) for sample in (Sample(key_share=0.3), WHOLE))
    assert taken.state == "passed", taken
    counts = [int(one.summary.split()[0].replace(",", "")) for one in (taken, of)]
    assert 0 < counts[0] < counts[1]


@pytest.mark.parametrize(
    ("name", "sample", "why"),
    [
        ("clocked", Sample(start=BEGAN), "depend on all earlier batches"),
        ("stages", Sample(key_share=0.5), "no key that could be sampled in all stages"),
    ],
)
def test_a_sample_that_cannot_be_taken_says_why(
    lived: Mapping[str, Running], name: str, sample: Sample, why: str
) -> None:
    told = verdict(lived[name], sample)
    assert (told.state, why in told.summary) == ("unproven", True)


def test_batches_that_nobody_remembers_are_not_run_again(lived: Mapping[str, Running]) -> None:
    running = lived["clocked"]
    batches = [to_batch_record("clocked", outcome) for outcome in running.progress.outcomes]
    assert "no longer has its batches before 1" in verdict(running, batches=batches[1:]).summary
    again = [*batches[:-1], replace(batches[-1], kind="replay")]
    assert "its history was replayed" in verdict(running, batches=again).summary
