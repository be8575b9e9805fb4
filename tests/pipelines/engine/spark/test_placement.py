"""Batches process in the executors or the driver with the same tables; a budget of zero means executors."""

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
from penstock.engine.plan.sources import Deduplication
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.steps import SqlStep
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


def run_batches(
    runner: StreamRunner, batches: list[list[dict[str, Any]]], topic: str, budgets: list[int]
) -> None:
    """Send and read batch by batch, each with its own driver budget."""
    read = 0
    for number, (records, budget) in enumerate(zip(batches, budgets, strict=True)):
        send(runner.broker, topic, [*records, b"broken"], partition=number % 2)
        read += len(records) + 1
        runner.budget_mb = budget
        runner.run_until_read(read)


def sum_fates(runner: StreamRunner, fates: tuple[str, ...]) -> int:
    """Sum the records with these fates over all batches."""
    accounts_of_batches = [account for outcome in runner.progress.outcomes for account in outcome.accounts]
    return sum(getattr(account, name) for account in accounts_of_batches for name in fates)


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"readings{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def add_deduplication(plan: Plan) -> Plan:
    """Add deduplication to a plan."""
    (source,) = plan.sources
    return replace(plan, sources=(replace(source, deduplication=Deduplication(("device", "at"), 10**12)),))


def test_the_size_of_remote_partials_includes_long_keys(spark: "SparkSession") -> None:
    """A few very long keys must not exceed the budget in bytes."""
    sizes = []
    for length in (1, 100_000):
        records = [{"device": f"{n}" + "k" * length, "at": n, "temperature": 1.5} for n in range(10)]
        (remote,) = (
            make_batch_input(spark, build_plan("t", Fixed(10_000)), records)
            .compute_remote_partials()
            .values()
        )
        sizes.append(remote.nbytes)
        remote.release()
    short_keys, long_keys = sizes
    assert short_keys < 10_000
    assert 1_000_000 < long_keys < 2_000_000


def test_remote_partials_of_stages_in_one_pass_match_fetched_ones(
    spark: "SparkSession",
) -> None:
    plan, other = build_plan("t", Fixed(10_000)), build_plan("t", Sessions(900), (WARM,))
    fields = FieldTypeResolver(spark).resolve_stage(other.sources, other.only_stage)
    other_stage = compile_stage(replace(other.only_stage, name="beside"), fields)
    sent = [*make_readings(40, seed=3), b"broken"]
    read = replace(make_batch_input(spark, plan, sent), other_stages=(other_stage,))
    inputs = {plan.only_stage.name: read, **read.inputs_of_other_stages()}
    fetched = {name: each.compute_partials() for name, each in inputs.items()}
    remote = read.compute_remote_partials()
    assert remote.keys() == fetched.keys()
    for name, partials in fetched.items():
        assert sort_rows(remote[name].fetch()) == sort_rows(partials), name
        assert remote[name].rows == partials.column("_fate").null_count
        assert count_fates(remote[name].summary) == count_fates(partials)
        remote[name].release()


def sort_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def count_fates(accounts_of_batches: pa.Table) -> dict[str | None, int]:
    """Count the records per fate."""
    count: Counter[str | None] = Counter()
    for row in accounts_of_batches.select(["_fate", "_counted"]).to_pylist():
        count[row["_fate"]] += row["_counted"]
    return dict(count)


def test_stages_in_one_pass_fold_in_the_executors(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan, other = build_plan(topic, Fixed(10_000)), build_plan(topic, Sessions(900), (WARM,))
    other_stage = replace(other.only_stage, name="beside", sinks=(LatestValues("beside"),))
    runner = StreamRunner(replace(plan, stages=(plan.only_stage, other_stage)), spark, broker, tmp_path)
    sent = make_readings(300, seed=9)
    run_batches(runner, [sent[:150], sent[150:]], topic, [0, 0])
    data = [outcome for outcome in runner.progress.outcomes if outcome.kind == "data"]
    assert {outcome.placement for outcome in data} == {"executors"}
    assert list_windows(runner.table(f"latest/{plan.name}")) == expect_windows(sent, TEN_SECONDS, 10_000)
    in_driver = StreamRunner(
        replace(plan, stages=(plan.only_stage, other_stage)),
        spark,
        broker,
        tmp_path / "here",
        budget_mb=2**20,
    )
    in_driver.run_until_read(302)
    assert {outcome.placement for outcome in in_driver.progress.outcomes} == {"driver"}
    assert list_windows(runner.table("latest/beside")) == list_windows(in_driver.table("latest/beside"))


@pytest.mark.parametrize("window", [Fixed(10_000), Sessions(900)], ids=["fixed", "sessions"])
def test_batches_may_alternate_between_driver_and_executors(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path, window: Window
) -> None:
    plan = add_deduplication(build_plan(topic, window, (WARM,), lateness=20_000))
    sent = make_readings(600, seed=5)
    batches = [sent[:200], sent[100:400], sent[400:]]
    mixed = StreamRunner(plan, spark, broker, tmp_path / "elsewhere")
    run_batches(mixed, batches, topic, [0, 2**10, 0])
    assert {outcome.placement for outcome in mixed.progress.outcomes} == {"driver", "executors"}
    in_driver = StreamRunner(plan, spark, broker, tmp_path / "here")
    in_driver.budget_mb = 2**20
    in_driver.run_until_read(703)
    assert {outcome.placement for outcome in in_driver.progress.outcomes} == {"driver"}
    for fates in (("read",), ("quarantined",), ("duplicate",), ("filtered",), ("accepted", "late")):
        assert sum_fates(mixed, fates) == sum_fates(in_driver, fates), fates


def test_tables_processed_in_the_executors_match_duckdb(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, Fixed(10_000)), spark, broker, tmp_path)
    sent = make_readings(900, seed=9)
    run_batches(runner, [sent[:300], sent[300:600], sent[600:]], topic, [0, 0, 0])
    assert {outcome.placement for outcome in runner.progress.outcomes if outcome.kind == "data"} == {
        "executors"
    }
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
        sent, TEN_SECONDS, 10_000
    )
