"""Columns of results, compared with the types that the engine writes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipelines.engine.operators.test_side_outputs import EmptyState, split_per_key

from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.first import First
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.quantiles import Quantiles
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.host.control import BatchRecord
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.fixed import Fixed
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import summarize_batches
from penstock.platform.definitions.asset_specs import AssetContext, table_asset_spec
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.lineage.openlineage import DatasetNamespaces, build_run_event
from penstock.platform.lineage.result_columns import describe_result_columns
from penstock.stream import after_count, collect, combine, fixed, global_window, max_, read, repeatedly, sum_

TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(35,4)": pa.decimal128(35, 4),
    "decimal(20,2)": pa.decimal128(20, 2),
    "decimal(38,4)": pa.decimal128(38, 4),
}
NUMBERS = tuple(name for name in list(TYPES)[:8] if name not in ("string", "boolean"))
ANY_TYPE_AGGREGATES: tuple[Aggregate, ...] = (Count("f"), Distinct("f"), Max("f"), First("f"), TopN("f", 3))
NUMERIC_AGGREGATES: tuple[Aggregate, ...] = (Sum("f"), Mean("f"), Quantiles("f", (0.5,)))
CASES = [
    *((kind, aggregate) for kind in NUMBERS for aggregate in NUMERIC_AGGREGATES),
    *((kind, aggregate) for kind in (*NUMBERS, "string", "boolean") for aggregate in ANY_TYPE_AGGREGATES),
]


def to_arrow_type(kind: str) -> pa.DataType:
    item = kind.removeprefix("array<").removesuffix(">")
    return TYPES[kind] if item == kind else pa.list_(TYPES[item])


def describe_types(plan: Plan, stage: Stage | None = None) -> dict[str, str]:
    stage = stage or plan.stages[-1]
    return {column.name: column.type for column in describe_result_columns(plan, stage, stage.sinks[0])}


@pytest.mark.parametrize(("kind", "aggregate"), CASES, ids=str)
def test_an_aggregate_has_the_type_that_the_engine_computes(kind: str, aggregate: Aggregate) -> None:
    columns = (Column("k", "STRING"), Column("at", "BIGINT"), Column("f", kind.upper()))
    source = PlanSource("s", TopicOrigin("s"), columns, "at")
    stage = Stage(
        "told",
        ("s",),
        Fixed(60_000),
        (AggregateOutput("o", aggregate),),
        key=("k",),
        sinks=(PaneLog("told"),),
    )
    compiled = compile_stage(stage, {"k": pa.string(), "at": pa.int64(), "f": TYPES[kind]})
    assert (
        to_arrow_type(describe_types(Plan("told", (source,), (stage,)))["o"])
        == compiled.pane_schema.field("o").type
    )


def test_a_renamed_or_mapped_field_keeps_its_type() -> None:
    renamed = read("sensors").select("at", d="device", warm="temperature").key("d")
    plan = renamed.aggregate(top=max_("warm"), all=collect("at")).window(fixed("1 minute")).write("told")
    assert describe_types(plan.to_plan("told")) | {"top": "double", "all": "array<bigint>"} == describe_types(
        plan.to_plan("told")
    )
    mapped = read("sensors").map(lambda row: row, returns={"at": "BIGINT", "n": "INT", "d": "STRING"})
    summed = mapped.key("d").aggregate(n=sum_("n")).window(fixed("1 minute")).write("told").to_plan("told")
    assert describe_types(summed)["n"] == "bigint"
    stateful = (
        read("sensors").key("device").stateful(split_per_key, state=EmptyState, returns={"level": "DOUBLE"})
    )
    later = stateful.write("levels", mode="log").then().key("device").aggregate(top=max_("level"))
    top_plan = later.window(global_window()).trigger(repeatedly(after_count(1))).write("tops").to_plan("tops")
    assert describe_types(top_plan)["top"] == "double"


def build_side_output_plan() -> Plan:
    base = read("sensors").key("device")
    stateful = base.stateful(
        split_per_key, state=EmptyState, returns={"great": "BIGINT"}, outputs={"small": {"least": "BIGINT"}}
    )
    return stateful.write("great", mode="log").write("small", mode="log", output="small").to_plan("great")


def test_each_output_table_has_the_lineage_of_its_columns(
    store: ControlStore, make_batch: Callable[..., BatchRecord]
) -> None:
    plan = build_side_output_plan()
    context, pipeline = AssetContext("/warehouse", "team:data", Path("/contracts")), CatalogPipeline(plan, "")
    expected = {"great": {"device", "great"}, "small": {"device", "least"}}
    for sink in plan.only_stage.sinks:
        metadata = table_asset_spec(pipeline, plan.only_stage, sink, context, ()).metadata
        shown = metadata["dagster/column_lineage"].value.deps_by_column
        columns = {column.name for column in metadata["dagster/column_schema"].value.columns}
        assert set(shown) == expected[sink.table]
        assert set(shown) <= columns
    store.record_batch(replace(make_batch(0), stream="great"))
    summary = summarize_batches(store, "great", -1)
    assert summary is not None
    event = build_run_event(
        summary, {}, {}, plan, "", {}, DatasetNamespaces("penstock", "broker:9092", "/warehouse")
    )
    lineage_columns = {
        column.name.rpartition("/")[2]: set(column.facets["columnLineage"].fields) for column in event.outputs
    }
    assert lineage_columns == expected


class CountCombiner:
    """A combiner with results of type double."""

    partial_type = pa.int64()
    result_type = pa.float64()
    can_subtract = False

    def add(self, values: pa.Table, groups: Any, count: int) -> pa.Array:
        return pa.array([values.num_rows] * count, pa.int64())

    def merge(self, partials: pa.Array, groups: Any, count: int) -> pa.Array:
        return partials

    def subtract(self, partials: pa.Array, removed: pa.Array) -> pa.Array:
        return partials

    def result(self, partials: pa.Array) -> pa.Array:
        return partials.cast(pa.float64())


def test_a_column_of_a_user_combiner_has_the_type_of_its_results() -> None:
    pipeline = read("sensors").key("device").aggregate(half=combine(CountCombiner(), "temperature"))
    plan = pipeline.window(fixed("1 minute")).write("told").to_plan("told")
    assert describe_types(plan)["half"] == "double"
