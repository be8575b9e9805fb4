"""A recorded case whose source gets a third column at a restart. Deduplication survives the upgrade."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.pipelines.engine.batch.stream_bench import TYPES
from tests.pipelines.engine.dedup.test_duplicates import DeduplicatingBench
from tests.pipelines.recorded_answers import load_recorded_document

from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.sources import Column, Deduplication, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.upgrade.plan_comparison import compare_plans
from penstock.engine.upgrade.state_migration import migrate_state
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.stream import after_count, count, fixed, max_, repeatedly

NAME = "SPARK-39650: specific keys allow input to change schema (dedup within watermark)"
BY_KEY = Deduplication(("key",), 10)
COLUMNS = (Column("key", "STRING"), Column("at", "BIGINT"))
STAGE = Stage(
    "stream",
    ("records",),
    fixed(1),
    (AggregateOutput("n", count()),),
    key=("key",),
    trigger=repeatedly(after_count(1)),
    lateness=10,
    sinks=(PaneLog("stream"),),
)
BEFORE = Plan(
    "stream",
    (PlanSource("records", TopicOrigin("records"), COLUMNS, "at", WatermarkStrategy(10), BY_KEY),),
    (STAGE,),
)
THIRD = AggregateOutput("third", max_("word"))
AFTER = replace(
    BEFORE,
    sources=(replace(BEFORE.sources[0], columns=(*COLUMNS, Column("word", "STRING"))),),
    stages=(replace(STAGE, aggregates=(*STAGE.aggregates, THIRD)),),
)


class ByKey(DeduplicatingBench):
    """A stream that drops duplicates of a key."""

    rule = BY_KEY


def iter_batches(steps: list[dict[str, Any]]) -> Iterator[tuple[InputBatch, list[list[Any]]]]:
    """Yield the batches of a case, each with its expected rows."""
    offset = 0
    for number, step in enumerate(step for step in steps if "add" in step):
        records = []
        for key, at, *third in step["add"]:
            content = {"key": key, "at": at, "value": 0, "word": third[0] if third else None}
            records.append(InputRecord("records", 0, offset, content))
            offset += 1
        yield InputBatch(number, 0, tuple(records)), step["expect"]["rows"]


def rows_of_batch(bench: ByKey, batch: int) -> list[list[Any]]:
    """Return the rows that a batch emitted."""
    rows = [row for row in bench.rows("panes/stream") if row["batch_id"] == batch]
    times = [int(row["window_start"].timestamp() * 1_000) for row in rows]
    thirds = [[row["third"]] if row.get("third") is not None else [] for row in rows]
    return [[row["key"], time, *third] for row, time, third in zip(rows, times, thirds, strict=True)]


def test_duplicates_are_known_after_an_upgrade_to_a_third_column(tmp_path: Path) -> None:
    (case,) = (
        case for case in load_recorded_document("spark/spark_watermark.json")["cases"] if case["name"] == NAME
    )
    first, second, third = iter_batches(case["steps"])
    bench = ByKey(BEFORE, tmp_path)
    engine = bench.open()
    for batch, rows in (first, second):
        bench.feed(engine, batch)
        assert rows_of_batch(bench, batch.id) == rows
    assert compare_plans(BEFORE, AFTER).upgrade_class is UpgradeClass.REPLAY, (
        "until the new output is accepted as starting now"
    )
    assert compare_plans(BEFORE, AFTER, ["third"]).upgrade_class is UpgradeClass.MIGRATABLE
    graph = compile_graph(AFTER, {STAGE.name: TYPES})
    upgraded = migrate_state(bench.folder / "stream", AFTER, graph, ["third"], epoch=1)
    bench.plan = AFTER
    batch, rows = third
    bench.feed(bench.open(epoch=2), batch)
    assert rows_of_batch(bench, upgraded.batch_id + 1) == rows


def test_an_unused_column_is_a_compatible_change() -> None:
    wider_plan = replace(BEFORE, sources=AFTER.sources)
    assert compare_plans(BEFORE, wider_plan).upgrade_class is UpgradeClass.COMPATIBLE
