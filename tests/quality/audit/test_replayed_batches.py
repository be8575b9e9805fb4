"""Results that depend on batches, recomputed by executing the recorded batches again."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, make_readings
from tests.pipelines.engine.spark.test_stage_chains import build_plan as build_three_stage_plan
from tests.quality.audit.audit_scopes import create_audit_scope

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.sources import Column, Deduplication, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.plan.steps import SqlStep
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.final_panes import FinalPanes
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.checks.results_check import check_recomputed_results
from penstock.quality.audit.comparability import Sample, explain_batch_dependence
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import CheckOutcome
from penstock.stream import after_count, after_watermark, collect, count, every, first, repeatedly, sum_
from penstock.stream.join_columns import join_member_outputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
TOPIC, OTHER_TOPIC, START_MS, PART_COUNT, RECORDS_PER_PART = "rerun", "rerun-beside", 1_000_000, 2, 150
FULL_SAMPLE = Sample()


@dataclass(frozen=True)
class CallCount:
    """The number of calls of a key."""

    number: int = 0


def count_calls(call: KeyContext[CallCount]) -> KeyUpdate[CallCount]:
    """Emit the number of records of each call, and a row for each timer: other batches give other rows."""
    now = CallCount((call.state or CallCount()).number + 1)
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


STRATEGY = WatermarkStrategy(1_000)


def build_plan(name: str, strategy: WatermarkStrategy = STRATEGY, **options: Any) -> Plan:
    sinks = (PaneLog(name), LatestValues(name), FinalPanes(name))
    stage = Stage(name, (TOPIC,), **{"aggregates": TOTALS, "key": ("device",), "sinks": sinks, **options})
    return Plan(name, (PlanSource(TOPIC, TopicOrigin(TOPIC), COLUMNS, "at", strategy),), (stage,))


def build_deduplicated_plan() -> Plan:
    plan = build_plan(
        "forgotten", window=Fixed(10_000), lateness=30_000, trigger=after_watermark(early=every(2_000))
    )
    source = replace(plan.sources[0], deduplication=Deduplication(("device", "temperature"), 5_000))
    return replace(plan, sources=(source,))


def build_two_stage_plan() -> Plan:
    """Two stages that read the same records in one pass, one of them with a filter."""
    every_window = build_plan("apart", window=Fixed(10_000), lateness=5_000)
    cold = build_plan("cold", window=Sliding(20_000, 10_000), steps=COLD_ONLY, accumulation="retracting")
    return replace(every_window, stages=(every_window.only_stage, cold.only_stage))


def build_join_plan() -> Plan:
    """Pairs of the readings of two topics, several for each window of a device."""
    columns = JoinColumn("here", TOPIC, "temperature"), JoinColumn("there", OTHER_TOPIC, "temperature")
    join = Join("full", TOPIC, OTHER_TOPIC, columns)
    plan = build_plan(
        "pairs", window=Fixed(10_000), lateness=5_000, join=join, aggregates=join_member_outputs(join)
    )
    stage = replace(plan.only_stage, inputs=(TOPIC, OTHER_TOPIC), sinks=(PaneLog("pairs"),))
    other = replace(plan.sources[0], name=OTHER_TOPIC, origin=TopicOrigin(OTHER_TOPIC))
    return validate_plan(replace(plan, sources=(*plan.sources, other), stages=(stage,)))


COLD_ONLY = (SqlStep("SELECT * FROM input WHERE temperature IS NULL OR temperature < 30"),)
RETURNS = (Column("number", "BIGINT"), Column("had", "BIGINT"))
CALL_FUNCTION = StatefulFunction(function_ref(count_calls), state_type(CallCount), RETURNS, clock=True)
EARLY = after_watermark(early=after_count(7), late=repeatedly(after_count(3)))
PLANS = [
    build_plan("called", window=CALL_FUNCTION, aggregates=(), sinks=(PaneLog("called"),)),
    build_plan("clocked", window=Fixed(60_000, time="processing"), trigger=after_watermark(early=every(10_000)),
            accumulation="retracting"),
    build_plan("timed", window=Tumbling(TimePolicy(40_000))),
    build_plan("in_parts", window=Sliding(20_000, 10_000), trigger=EARLY, lateness=5_000, accumulation="discarding",
            steps=COLD_ONLY, strategy=WatermarkStrategy(1_000, max_future_skew=100_000, future_records="accept")),
    build_plan("unshown", window=Sessions(5_000), trigger=repeatedly(after_count(2)), lateness=4_000),
    build_deduplicated_plan(),
    replace(build_three_stage_plan(TOPIC), name="stages"),
    build_two_stage_plan(),
    build_join_plan(),
]  # fmt: skip


@pytest.fixture(scope="module")
def running_streams(
    spark: "SparkSession", broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, StreamRunner]:
    """Streams of all plans over one topic, read in parts, with pauses in which clocks and timers advance.

    One plan reads a second topic with the same records.
    """
    for topic in (TOPIC, OTHER_TOPIC):
        broker.create_topic(topic, 2)
    folder = tmp_path_factory.mktemp("rerun")
    streams = {
        plan.name: StreamRunner(plan, spark, broker, folder / plan.name, clock=START_MS) for plan in PLANS
    }
    for part in range(PART_COUNT):
        sent = make_readings(RECORDS_PER_PART, seed=part)
        for partition in (0, 1):
            own_records = [record for record in sent if int(record["device"][1:]) % 2 == partition]
            for topic in (TOPIC, OTHER_TOPIC):
                send(broker, topic, [*own_records, b"no record"], partition)
        started = [(runner, runner.start()) for runner in streams.values()]
        try:
            for runner, stream in started:
                expected = (RECORDS_PER_PART + 2) * len(runner.plan.sources)
                runner.progress.wait_for((part + 1) * expected, stream)
        finally:
            for _, stream in started:
                stream.drain()
        for runner in streams.values():
            runner.clock += 45_000
    for name in ("called", "clocked"):
        run_until_tick(streams[name])
    return streams


def run_until_tick(runner: StreamRunner) -> None:
    """Run a stream until its timers fired."""
    stream = runner.start()
    try:
        with runner.progress.changed:
            assert runner.progress.changed.wait_for(lambda: runner.progress.outcomes[-1].kind == "tick", 90)
    finally:
        stream.drain()


def recompute(runner: StreamRunner, sample: Sample = FULL_SAMPLE, **changes: Any) -> CheckOutcome:
    scope = replace(create_audit_scope(runner, START_MS), **changes)
    return check_recomputed_results(scope, {topic: TopicView(scope, topic) for topic in scope.topics}, sample)


@pytest.mark.parametrize("plan", PLANS, ids=[plan.name for plan in PLANS])
def test_every_pane_is_recomputed_exactly(running_streams: Mapping[str, StreamRunner], plan: Plan) -> None:
    runner = running_streams[plan.name]
    assert explain_batch_dependence(runner.plan)
    verdict = recompute(runner)
    assert verdict.state == "passed", verdict
    rows, batches = int(verdict.summary.split()[0].replace(",", "")), len(runner.progress.outcomes)
    assert rows > 0
    assert verdict.summary.endswith(f"match {batches} re-executed batches")


def test_an_edited_pane_is_found_with_its_location(
    running_streams: Mapping[str, StreamRunner], tmp_path: Path
) -> None:
    runner = running_streams["called"]
    table = DeltaTable(runner.folder / "warehouse" / "panes" / "called")
    version = table.version()
    table.update({"had": "had + 1"}, predicate="device = 'd3' AND number = 2")
    try:
        verdict = recompute(runner)
    finally:
        DeltaTable(table.table_uri).restore(version)
    assert verdict.state == "failed"
    assert "device d3" in verdict.differences[0].location
    assert "had is" in verdict.differences[0].description


def test_an_edited_pair_is_named_by_both_of_its_values(running_streams: Mapping[str, StreamRunner]) -> None:
    runner = running_streams["pairs"]
    table = DeltaTable(runner.folder / "warehouse" / "panes" / "pairs")
    version, pairs = table.version(), table.to_pyarrow_table().to_pylist()
    key_columns = ("batch_id", "device", "window_start", "here", "there")
    keys = Counter(tuple(row[name] for name in key_columns) for row in pairs)
    windows = Counter((row["device"], row["window_start"]) for row in pairs)
    pair = next(
        row
        for row in pairs
        if None not in (row["here"], row["there"])
        and keys[tuple(row[name] for name in key_columns)] == 1
        and windows[row["device"], row["window_start"]] > 1
    )
    window_start = pair["window_start"].isoformat()
    predicate = f"device = '{pair['device']}' AND here = {pair['here']} AND there = {pair['there']}"
    edited = table.update(
        {"here": "here + 1000"}, predicate=f"{predicate} AND window_start = '{window_start}'"
    )
    try:
        verdict = recompute(runner)
    finally:
        DeltaTable(table.table_uri).restore(version)
    assert edited["num_updated_rows"] == 1
    unexpected = f"here {pair['here'] + 1000}, there {pair['there']}, copy 0"
    missing = f"here {pair['here']}, there {pair['there']}, copy 0"
    assert {
        (difference.location.partition("kind insert, ")[2], difference.description)
        for difference in verdict.differences
    } == {
        (unexpected, "in the table, but not in the recomputed results"),
        (missing, "missing from the table"),
    }


def test_a_sample_of_keys_is_recomputed(running_streams: Mapping[str, StreamRunner]) -> None:
    sampled, total = (
        recompute(running_streams["clocked"], sample) for sample in (Sample(key_share=0.3), FULL_SAMPLE)
    )
    assert sampled.state == "passed", sampled
    counts = [int(pair.summary.split()[0].replace(",", "")) for pair in (sampled, total)]
    assert 0 < counts[0] < counts[1]


@pytest.mark.parametrize(
    ("name", "sample", "reason"),
    [
        ("clocked", Sample(start=START_MS), "depend on all earlier batches"),
        ("stages", Sample(key_share=0.5), "no key that could be sampled in all stages"),
    ],
)
def test_an_impossible_sample_is_unproven_with_the_reason(
    running_streams: Mapping[str, StreamRunner], name: str, sample: Sample, reason: str
) -> None:
    verdict = recompute(running_streams[name], sample)
    assert (verdict.state, reason in verdict.summary) == ("unproven", True)


def test_missing_or_replayed_batches_are_not_recomputed(running_streams: Mapping[str, StreamRunner]) -> None:
    runner = running_streams["clocked"]
    batches = [to_batch_record("clocked", outcome) for outcome in runner.progress.outcomes]
    assert "no longer has its batches before 1" in recompute(runner, batches=batches[1:]).summary
    replayed = [*batches[:-1], replace(batches[-1], kind="replay")]
    assert "its history was replayed" in recompute(runner, batches=replayed).summary
