"""The physical plan lists each part with its tier and tasks."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from tests.pipelines.engine.batch.test_crashes import PLANS
from tests.pipelines.engine.explain.test_explain import CORRECTIONS
from tests.pipelines.plan_strategies import plans

from penstock.engine.explain import explain
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.stages import Plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.aggregate.event_times import judge_event_times
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL, parse_records
from penstock.engine.spark.physical_plan import Parallelism, describe_physical_plan
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.tables.table_paths import late_records_path, stage_ledger_path
from penstock.engine.triggers.default import Default
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.stream import between, count, fixed, join, read, sum_, union

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARALLELISM = Parallelism({"sensors": 4}, shuffle_partitions=2, driver_budget_mb=256)


def test_each_part_has_its_tier_and_its_tasks() -> None:
    parts = [(part.part, part.placement) for part in describe_physical_plan(CORRECTIONS, PARALLELISM)]
    assert parts == [
        ("read sensors", "executors, 4 tasks"),
        ("record ids", "executors, 1 task"),
        ("deduplicate", "driver, 1 task"),
        ("batch up to 20,000 records", "executors, 1 task"),
        ("larger batch", "executors, 4 tasks"),
        ("its shuffle", "executors, 2 tasks"),
        (f"process {CORRECTIONS.only_stage.name}", "driver, 1 task"),
        (f"process {CORRECTIONS.only_stage.name} in parts", "executors, 2 tasks"),
        ("state", "driver, 1 task"),
        ("single records", "executors, 1 task"),
        ("tables", "driver, 1 task"),
        ("ticker", "driver, 1 task"),
    ]


@pytest.mark.parametrize("part", ["its shuffle", f"process {CORRECTIONS.only_stage.name}"])
def test_order_windows_fold_every_record_without_a_shuffle(part: str) -> None:
    stage = replace(CORRECTIONS.only_stage, window=Tumbling(CountPolicy(3)), trigger=Default(), lateness=0)
    parts = {
        each.part: each.operation
        for each in describe_physical_plan(replace(CORRECTIONS, stages=(stage,)), PARALLELISM)
    }
    assert ("ordered records" in parts.get(part, "")) == part.startswith("process")


def test_stages_over_the_same_records_share_one_job() -> None:
    other = replace(CORRECTIONS.only_stage, name="other", sinks=(PaneLog("other"),))
    plan = replace(CORRECTIONS, stages=(CORRECTIONS.only_stage, other))
    parts = [(part.part, part.placement) for part in describe_physical_plan(plan, PARALLELISM)]
    assert parts[3:10] == [
        ("batch up to 20,000 records", "executors, 1 task"),
        ("larger batch", "executors, 4 tasks"),
        ("its shuffle", "executors, 2 tasks"),
        (f"process {CORRECTIONS.only_stage.name}", "driver, 1 task"),
        (f"process {CORRECTIONS.only_stage.name} in parts", "executors, 2 tasks"),
        ("process other", "driver, 1 task"),
        ("process other in parts", "executors, 2 tasks"),
    ]
    assert (
        "share one pass over the records"
        in explain(plan, describe_physical_plan(plan, PARALLELISM)).as_text()
    )


@pytest.mark.parametrize("name", ["fixed", "parallel stages", "two stages", "window join", "side outputs"])
def test_the_number_of_tables_is_correct(name: str) -> None:
    plan = PLANS[name]
    tables = {
        *(sink.path for stage in plan.stages for sink in stage.sinks),
        *(f"quarantine/{source.name}" for source in plan.sources),
        *(
            table_path(plan, stage)
            for stage in plan.source_stages
            for table_path in (stage_ledger_path, late_records_path)
        ),
    }
    parts = {part.part: part.operation for part in describe_physical_plan(plan, PARALLELISM)}
    assert f"one commit for each of {len(tables)} tables" in parts["tables"]


def test_lookup_tables_and_published_topics_are_parts() -> None:
    limited = read("sensors").lookup("latest/sites", on="site", columns={"most": "DOUBLE"}).filter("most > 3")
    counted = limited.key("device").aggregate(n=count()).window(fixed("1 minute")).accumulation("retracting")
    plan = (
        union(counted.publish("minutes"), counted.named("again").write("t"))
        .aggregate(n=sum_("n"))
        .write("all")
        .plan
    )
    parts = {part.part: part.operation for part in describe_physical_plan(plan, PARALLELISM)}
    assert {"look up latest/sites", "publish minutes"} <= set(parts)


def test_the_parts_say_why_records_are_sent() -> None:
    interval_join = join(read("clicks").filter("page = 'x'"), read("cards"), by="id", take=["amount"])
    join_parts = describe_physical_plan(
        interval_join.window(between("0 s", "1 minute")).write("t", mode="log").plan, PARALLELISM
    )
    row_parts = describe_physical_plan(
        read("sensors").rows({"site": "STRING"}).write("t", mode="log").plan, PARALLELISM
    )
    parts = [{part.part: part.operation for part in all_parts} for all_parts in (join_parts, row_parts)]
    larger_batch, processes = ([each[part] for each in parts] for part in ("larger batch", "process t"))
    assert larger_batch == [
        "1 step, then sends every record: matches are found in the state of the other side",
        "1 step, then sends every record, as a row",
    ]
    assert processes == [
        "fetches records over Arrow, merges them into the state",
        "fetches records over Arrow and passes them on",
    ]


@settings(deadline=None)
@given(plans())
def test_every_plan_can_fold_in_the_driver_and_the_executors(plan: Plan) -> None:
    processes = [
        part
        for part in describe_physical_plan(plan, Parallelism({}, 2, 256))
        if part.part.startswith("process")
    ]
    assert [process.tier for process in processes] == ["driver", "executors"]


@pytest.mark.spark
@pytest.mark.parametrize("small", [True, False])
def test_spark_shuffles_only_a_larger_batch_into_the_planned_tasks(
    spark: "SparkSession", small: bool
) -> None:
    sources = CORRECTIONS.sources
    stage = compile_stage(
        replace(CORRECTIONS.only_stage, steps=()),
        FieldTypeResolver(spark).resolve_stage(sources, CORRECTIONS.only_stage),
    )
    raw = spark.createDataFrame([], KAFKA_SOURCE_DDL).repartition(4)
    records = judge_event_times(parse_records(raw, sources), sources, clock=0)
    job = aggregate_partials(records.coalesce(1) if small else records, stage)
    plan = job._jdf.queryExecution().executedPlan().toString()
    tasks = spark.conf.get("spark.sql.shuffle.partitions")
    assert ("Exchange hashpartitioning(_topic" in plan) != small
    assert (f", {tasks}), ENSURE_REQUIREMENTS" in plan) != small
