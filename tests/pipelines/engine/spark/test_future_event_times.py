"""Records with event times ahead of the clock: judged the same by the cached plan and by a plan of the batch."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.pipelines.engine.spark.stream_runner import send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
)
from tests.pipelines.engine.spark.test_replay import ReplayRunner
from tests.pipelines.engine.spark.test_row_checks import IN_ORDER

from penstock.core.duration import parse_duration_ms
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import FutureSkewPolicy
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL
from penstock.engine.spark.plan_cache import AnalyzedPlanCache
from penstock.engine.spark.stage_partials import fetch_by_cached_plan, fetch_partials, has_cacheable_plan
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.triggers.default import Default
from penstock.infra.local_broker import LocalBroker
from penstock.quality.quarantine.quarantined_records import RecordPosition
from penstock.quality.quarantine.recorded_exclusions import RecordedExclusions
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SKEW_MS, CLOCK = 10_000, 50_000
YEAR_MS = 365 * 86_400_000
PLANS = [
    build_plan("t", fixed("10 seconds")),
    replace(IN_ORDER, stages=(replace(IN_ORDER.only_stage, trigger=Default()),)),
]


@pytest.fixture
def runner(spark: "SparkSession", broker: LocalBroker, tmp_path: Path) -> ReplayRunner:
    """A stream over a topic with one partition."""
    topic = f"ahead{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    return ReplayRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)


def limit_skew(plan: Plan, max_future_skew: int | None, policy: FutureSkewPolicy = "quarantine") -> Plan:
    (source,) = plan.sources
    rule = replace(source.watermark, max_future_skew=max_future_skew, future_records=policy)
    return replace(plan, sources=(replace(source, watermark=rule),))


def read_batch(
    spark: "SparkSession", plan: Plan, times: list[int], cache: AnalyzedPlanCache
) -> SparkBatchInput:
    rows = [
        (None, json.dumps({"device": f"d{offset % 3}", "at": at}).encode(), "t", 0, offset, None)
        for offset, at in enumerate(times)
    ]
    stage = compile_stage(
        plan.only_stage, FieldTypeResolver(spark).resolve_stage(plan.sources, plan.only_stage)
    )
    return SparkBatchInput(
        spark.createDataFrame(rows, KAFKA_SOURCE_DDL),
        plan.sources,
        stage,
        CLOCK,
        (OffsetRange("t", 0, 0, len(rows)),),
        plan_cache=cache,
    )


def sort_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, default=str))


@pytest.mark.spark
@pytest.mark.parametrize("policy", ["quarantine", "accept"])
@pytest.mark.parametrize("plan", PLANS, ids=["aggregated", "single records"])
def test_the_cached_plan_gives_what_a_judging_plan_gives(
    spark: "SparkSession", plan: Plan, policy: FutureSkewPolicy
) -> None:
    plan, cache, rng = limit_skew(plan, SKEW_MS, policy), AnalyzedPlanCache(), random.Random(17)
    for latest, is_cached in ((CLOCK, True), (CLOCK + SKEW_MS, True), (CLOCK + 2 * SKEW_MS, False)):
        times = [rng.randrange(latest - 2 * SKEW_MS, latest) for _ in range(20)] + [latest]
        batch = read_batch(spark, plan, times, cache)
        assert has_cacheable_plan(batch)
        assert (fetch_by_cached_plan(batch) is not None) is is_cached
        judged = fetch_partials(replace(batch, plan_cache=AnalyzedPlanCache()), None)
        assert sort_rows(batch.compute_partials().to_pylist()) == sort_rows(judged.to_pylist())


@pytest.mark.spark
def test_the_reason_says_by_how_much_an_event_time_is_ahead(spark: "SparkSession") -> None:
    ahead = {
        "365d": YEAR_MS,
        "1d2h3m4.005s": 93_784_005,
        "10.001s": 10_001,
        "1m": 60_000,
        "23h59m": 86_340_000,
    }
    assert [parse_duration_ms(text) for text in ahead] == list(ahead.values())
    times = [CLOCK + milliseconds for milliseconds in ahead.values()]
    batch = read_batch(spark, limit_skew(PLANS[0], SKEW_MS), [CLOCK, *times], AnalyzedPlanCache())
    rows = batch.read_invalid_records().to_pylist()
    assert [(row["offset"], row["reason"]) for row in rows] == [
        (offset, f"future_event_time:at ({text} ahead of the clock, max_future_skew 10s)")
        for offset, text in enumerate(ahead, start=1)
    ]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_replay_with_a_limit_heals_a_stream_and_keeps_what_it_quarantined(
    runner: ReplayRunner,
) -> None:
    """One record a year ahead made all later ones late; an hour ahead is no longer ahead when a replay runs."""
    topic = runner.plan.sources[0].name
    runner.plan = replace(runner.plan, stages=(replace(runner.plan.only_stage, lateness=0),))
    before, after = (make_readings(40, seed) for seed in (1, 2))
    runner.clock = 60_000
    send(runner.broker, topic, before)
    runner.run_until_read(40)
    send(runner.broker, topic, [{"device": "clock", "at": runner.clock + YEAR_MS}])
    runner.run_until_read(41)
    send(runner.broker, topic, after)
    runner.run_until_read(81)
    assert runner.table(f"late/{runner.plan.name}").num_rows == 40

    runner.plan = limit_skew(runner.plan, 600_000)
    send(runner.broker, topic, [{"device": "clock", "at": runner.clock + 3_600_000}])
    runner.run_until_read(82)
    for name in ("healed", "healed again"):
        runner.clock += 7_200_000
        replay = prepare_replay(runner, name.replace(" ", "-"))
        replay.run_history()
        runner.finish_replay(replay)
        assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
            before + after, TEN_SECONDS, 10_000
        )
        assert runner.table(f"late/{runner.plan.name}").num_rows == 0
        reasons = runner.table(f"quarantine/{topic}").sort_by("offset").column("reason").to_pylist()
        assert reasons[1] == "future_event_time:at (1h ahead of the clock, max_future_skew 10m)"
        assert [reason.split(":")[0] for reason in reasons] == ["future_event_time"] * 2


@pytest.mark.spark
@pytest.mark.kafka
def test_a_record_that_a_replay_leaves_out_stays_out(runner: ReplayRunner) -> None:
    topic = runner.plan.sources[0].name
    readings = make_readings(30, seed=3)
    send(runner.broker, topic, [*readings, {"device": "clock", "at": 70_000}])
    runner.run_until_read(31)
    for name, left_out in (("first", [(topic, RecordPosition(0, 30))]), ("second", [])):
        replay = prepare_replay(runner, name, left_out)
        replay.run_history()
        runner.finish_replay(replay)
        assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
            readings, TEN_SECONDS, 10_000
        )
        (row,) = runner.table(f"quarantine/{topic}").to_pylist()
        assert (row["offset"], row["reason"]) == (30, "left_out: by a replay")


def prepare_replay(
    runner: ReplayRunner, name: str, left_out: list[tuple[str, RecordPosition]] | None = None
) -> Any:
    """Prepare a replay as the platform does, with the exclusions that the stream has recorded."""
    exclusions = RecordedExclusions(runner.plan, runner.warehouse, lambda _: (), left_out or ())
    return runner.prepare_replay(runner.topic_source(), f"{name}-{uuid4().hex[:4]}", exclusions)
