"""The fold in Spark's executors: a budget of nothing sends every batch there, and the tables are the same."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
)
from tests.pipelines.engine.spark.test_row_checks import make_batch_input

from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan import Deduplication, Plan, SqlStep
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
WARM = SqlStep("SELECT * FROM input WHERE temperature IS NULL OR temperature > 3")


def ran(runner: StreamRunner, batches: list[list[dict[str, Any]]], topic: str, budgets: list[int]) -> None:
    """Send and read batch by batch, each by a host with a budget of its own."""
    read = 0
    for number, (records, budget) in enumerate(zip(batches, budgets, strict=True)):
        send(runner.broker, topic, [*records, b"broken"], partition=number % 2)
        read += len(records) + 1
        runner.budget_mb = budget
        runner.run_until_read(read)


def total(runner: StreamRunner, accounts: tuple[str, ...]) -> int:
    """How many records of all batches became one of these."""
    told = [account for outcome in runner.progress.outcomes for account in outcome.accounts]
    return sum(getattr(account, name) for account in told for name in accounts)


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"readings{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def deduplicated(plan: Plan) -> Plan:
    """The same with repeats set aside."""
    (source,) = plan.sources
    return replace(plan, sources=(replace(source, deduplication=Deduplication(("device", "at"), 10**12)),))


def test_partials_that_stay_in_the_executors_weigh_what_they_hold(spark: "SparkSession") -> None:
    """A budget of bytes is not to be exceeded by a few keys that are very long."""
    weights = []
    for length in (1, 100_000):
        records = [{"device": f"{n}" + "k" * length, "at": n, "temperature": 1.5} for n in range(10)]
        (weighed,) = (
            make_batch_input(spark, build_plan("t", Fixed(10_000)), records)
            .compute_remote_partials()
            .values()
        )
        weights.append(weighed.nbytes)
        weighed.release()
    short, long = weights
    assert short < 10_000
    assert 1_000_000 < long < 2_000_000


def test_stages_that_share_a_pass_are_weighed_each_and_say_what_they_say_where_they_are_fetched(
    spark: "SparkSession",
) -> None:
    plan, other = build_plan("t", Fixed(10_000)), build_plan("t", Sessions(900), (WARM,))
    fields = FieldTypeResolver(spark).resolve_stage(other.sources, other.only_stage)
    beside = compile_stage(replace(other.only_stage, name="beside"), fields)
    sent = [*make_readings(40, seed=3), b"broken"]
    read = replace(make_batch_input(spark, plan, sent), other_stages=(beside,))
    apart = {plan.only_stage.name: read, **read.inputs_of_other_stages()}
    fetched = {name: each.compute_partials() for name, each in apart.items()}
    weighed = read.compute_remote_partials()
    assert weighed.keys() == fetched.keys()
    for name, partials in fetched.items():
        assert in_any_order(weighed[name].fetch()) == in_any_order(partials), name
        assert weighed[name].rows == partials.column("_fate").null_count
        assert counted(weighed[name].summary) == counted(partials)
        weighed[name].release()


def in_any_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def counted(told: pa.Table) -> dict[str | None, int]:
    """How many records became what."""
    count: Counter[str | None] = Counter()
    for row in told.select(["_fate", "_counted"]).to_pylist():
        count[row["_fate"]] += row["_counted"]
    return dict(count)


def test_stages_that_share_a_pass_are_folded_in_the_executors_each(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan, other = build_plan(topic, Fixed(10_000)), build_plan(topic, Sessions(900), (WARM,))
    beside = replace(other.only_stage, name="beside", sinks=(LatestValues("beside"),))
    runner = StreamRunner(replace(plan, stages=(plan.only_stage, beside)), spark, broker, tmp_path)
    sent = make_readings(300, seed=9)
    ran(runner, [sent[:150], sent[150:]], topic, [0, 0])
    data = [outcome for outcome in runner.progress.outcomes if outcome.kind == "data"]
    assert {outcome.placement for outcome in data} == {"executors"}
    assert list_windows(runner.table(f"latest/{plan.name}")) == expect_windows(sent, TEN_SECONDS, 10_000)
    here = StreamRunner(
        replace(plan, stages=(plan.only_stage, beside)), spark, broker, tmp_path / "here", budget_mb=2**20
    )
    here.run_until_read(302)
    assert {outcome.placement for outcome in here.progress.outcomes} == {"driver"}
    assert list_windows(runner.table("latest/beside")) == list_windows(here.table("latest/beside"))


@pytest.mark.parametrize("window", [Fixed(10_000), Sessions(900)], ids=["fixed", "sessions"])
def test_batches_go_to_the_executors_and_back_and_nobody_sees_a_difference(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path, window: Window
) -> None:
    plan = deduplicated(build_plan(topic, window, (WARM,), lateness=20_000))
    sent = make_readings(600, seed=5)
    batches = [sent[:200], sent[100:400], sent[400:]]
    elsewhere = StreamRunner(plan, spark, broker, tmp_path / "elsewhere")
    ran(elsewhere, batches, topic, [0, 2**10, 0])
    assert {outcome.placement for outcome in elsewhere.progress.outcomes} == {"driver", "executors"}
    here = StreamRunner(plan, spark, broker, tmp_path / "here")
    here.budget_mb = 2**20
    here.run_until_read(703)
    assert {outcome.placement for outcome in here.progress.outcomes} == {"driver"}
    for some in (("read",), ("quarantined",), ("duplicate",), ("filtered",), ("folded", "late")):
        assert total(elsewhere, some) == total(here, some), some


def test_what_the_executors_fold_is_what_the_records_say(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, Fixed(10_000)), spark, broker, tmp_path)
    sent = make_readings(900, seed=9)
    ran(runner, [sent[:300], sent[300:600], sent[600:]], topic, [0, 0, 0])
    assert {outcome.placement for outcome in runner.progress.outcomes if outcome.kind == "data"} == {
        "executors"
    }
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
        sent, TEN_SECONDS, 10_000
    )
