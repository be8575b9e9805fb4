"""Row checks count failures, quarantine records or stop the stream in the pass that reads them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.patience import PATIENCE_S
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import build_plan, list_windows, sum_accounts

from penstock.core.waiting import wait_until
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import CheckAction, RowCheck, TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.steps import SqlStep
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.triggers.default import Default
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.tumbling import Tumbling
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
WARM = RowCheck("warm", "temperature < 0", "warn")
KNOWN = RowCheck("known", "device IS NOT NULL AND NOT (device IN ('a', 'b'))", "quarantine")
EARLY = RowCheck("early", "at > 50000", "stop")
RECORDS: list[Any] = [
    {"device": "a", "at": 5, "temperature": 1.5},
    {"device": "a", "at": 6, "temperature": -1.5},
    {"device": "z", "at": 7, "temperature": -2.5},
    {"device": "b", "at": 8, "temperature": None},
    b"broken",
    None,
]


def add_checks(plan: Plan, *checks: RowCheck) -> Plan:
    return replace(plan, sources=(replace(plan.sources[0], checks=checks),))


def make_batch_input(spark: "SparkSession", plan: Plan, records: list[Any]) -> SparkBatchInput:
    contents = [r if r is None or isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    rows = [(None, value, "t", 0, offset, None) for offset, value in enumerate(contents)]
    stage = compile_stage(
        plan.only_stage, FieldTypeResolver(spark).resolve_stage(plan.sources, plan.only_stage)
    )
    ranges = (OffsetRange("t", 0, 0, len(rows)),)
    return SparkBatchInput(spark.createDataFrame(rows, KAFKA_SOURCE_DDL), plan.sources, stage, 0, ranges)


FAR_AHEAD = 253_000_000_000_000
"""An event time of the year 9987; a sum of 40,000 of them overflows."""


def build_time_sum_plan() -> Plan:
    plan = build_plan("t", fixed("10 seconds"))
    return replace(
        plan, stages=(replace(plan.only_stage, aggregates=(AggregateOutput("total", sum_("at")),)),)
    )


IN_ORDER = build_plan("t", Tumbling(CountPolicy(2)), lateness=0)
PLANS = [
    build_plan("t", fixed("10 seconds")),
    build_plan("t", fixed("10 seconds"), (SqlStep("SELECT * FROM input WHERE at != 6"),)),
    replace(IN_ORDER, stages=(replace(IN_ORDER.only_stage, trigger=Default()),)),
]


@pytest.mark.parametrize("fetched_later", [False, True], ids=["fetched", "fetched later"])
@pytest.mark.parametrize("plan", PLANS, ids=["aggregated", "after steps", "in order"])
def test_failed_checks_are_counted_and_quarantined_in_one_pass(
    spark: "SparkSession", plan: Plan, fetched_later: bool
) -> None:
    read = make_batch_input(spark, add_checks(plan, WARM, KNOWN, EARLY), RECORDS)
    partials = (
        read.compute_remote_partials()[read.stage.plan.name].fetch()
        if fetched_later
        else read.compute_partials()
    )
    assert read.count_failed_checks().to_pylist() == [
        {"topic": "t", "check": "warm", "action": "warn", "records": 2},
        {"topic": "t", "check": "known", "action": "quarantine", "records": 1},
    ]
    reasons = [(row["offset"], row["reason"]) for row in read.read_invalid_records().to_pylist()]
    assert reasons == [(2, "check:known"), (4, "malformed"), (5, "no_value")]
    counts: dict[str | None, int] = {}
    for row in partials.select(["_fate", "_counted"]).to_pylist():
        counts[row["_fate"]] = counts.get(row["_fate"], 0) + row["_counted"]
    assert sum(counts.values()) == len(RECORDS)
    assert counts["quarantined"] == 3


def test_a_check_that_is_null_does_not_fail(spark: "SparkSession") -> None:
    plan = add_checks(PLANS[0], RowCheck("null", "temperature > 1 AND NULL", "quarantine"))
    read = make_batch_input(spark, plan, RECORDS)
    read.compute_partials()
    assert read.count_failed_checks().num_rows == 0


@pytest.mark.parametrize("action", ["quarantine", "warn"])
def test_each_input_has_its_own_checks(spark: "SparkSession", action: CheckAction) -> None:
    plan = add_checks(PLANS[0], replace(KNOWN, action=action))
    other = replace(plan.sources[0], name="u", origin=TopicOrigin("u"), checks=(WARM,))
    two_topic_plan = replace(
        plan, sources=(*plan.sources, other), stages=(replace(plan.only_stage, inputs=("t", "u")),)
    )
    rows = [(None, json.dumps(RECORDS[2]).encode(), topic, 0, 0, None) for topic in ("t", "u")]
    stage = compile_stage(
        two_topic_plan.only_stage,
        FieldTypeResolver(spark).resolve_stage(two_topic_plan.sources, two_topic_plan.only_stage),
    )
    ranges = (OffsetRange("t", 0, 0, 1), OffsetRange("u", 0, 0, 1))
    read = SparkBatchInput(
        spark.createDataFrame(rows, KAFKA_SOURCE_DDL), two_topic_plan.sources, stage, 0, ranges
    )
    read.compute_partials()
    failed = read.count_failed_checks().select(["topic", "check"]).to_pylist()
    assert failed == [{"topic": "t", "check": "known"}, {"topic": "u", "check": "warm"}]
    assert read.read_invalid_records().column("topic").to_pylist() == (
        ["t"] if action == "quarantine" else []
    )


def test_quarantined_values_do_not_overflow_a_sum(spark: "SparkSession") -> None:
    plan = add_checks(build_time_sum_plan(), RowCheck("far", "at >= 100000", "quarantine"))
    far_ahead = [{"device": "z", "at": FAR_AHEAD + n % 10} for n in range(40_000)]
    partials = (
        make_batch_input(spark, plan, [*far_ahead, {"device": "a", "at": 5}]).compute_partials().to_pylist()
    )
    assert [(row["_fate"], row["_counted"]) for row in partials if row["_fate"]] == [("quarantined", 40_000)]
    assert [row["total_sum"] for row in partials if not row["_fate"]] == [5]


def test_an_event_time_out_of_range_extends_no_session(spark: "SparkSession") -> None:
    records = [{"device": "a", "at": at} for at in (5, 2**63 - 1)]
    partials = (
        make_batch_input(spark, build_plan("t", Sessions(3_000)), records).compute_partials().to_pylist()
    )
    assert sorted((row["_fate"] or "", row["_counted"], row["piece_end"]) for row in partials) == [
        ("", 1, 3_005),
        ("quarantined", 1, None),
    ]


@pytest.mark.kafka
def test_a_stop_check_stops_the_stream_before_its_batch(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    topic = f"checked{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    plan = add_checks(build_plan(topic, fixed("10 seconds")), WARM, KNOWN, EARLY)
    runner = StreamRunner(plan, spark, broker, tmp_path)
    send(broker, topic, RECORDS)
    runner.run_until_read(6)
    send(broker, topic, [{"device": "a", "at": 50_000 + n, "temperature": 1.0} for n in range(3)])
    stream = runner.start()
    wait_until(lambda: stream.failure() is not None, PATIENCE_S, "the check to stop the stream")
    stream.drain()
    assert f"2 records of {topic} fail the check 'early'" in str(stream.failure())
    assert f"which stops the stream: {topic}/0 offset 7" in str(stream.failure())
    assert sum_accounts(runner, "read", "quarantined") == [(6, 3)]
    runner.plan = add_checks(plan, WARM, KNOWN, replace(EARLY, action="warn"))
    runner.run_until_read(9)
    assert sum_accounts(runner, "read", "accepted", "quarantined") == [(9, 6, 3)]
    check_rows = runner.table(f"checks/{plan.name}").sort_by("batch_id")
    failed = [(row["check"], row["action"], row["records"]) for row in check_rows.to_pylist()]
    assert failed == [("warm", "warn", 2), ("known", "quarantine", 1), ("early", "warn", 2)]
    assert len(list_windows(runner.table(f"latest/{plan.name}"))) == 3
