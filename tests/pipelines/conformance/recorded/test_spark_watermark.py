"""Spark's cases of watermarks, sessions and deduplication, batch by batch."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median, stdev, variance
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from tests.pipelines.conformance.recorded.spark_evaluation import (
    describe_reference_panes,
    describe_spark_panes,
)
from tests.pipelines.recorded_answers import ORACLES, load_recorded_document

from penstock.conformance.reference import EvaluatedBatch, Evaluator, InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.custom import Custom
from penstock.engine.aggregates.sum import Sum
from penstock.engine.definition.user_functions import combiner_ref
from penstock.engine.plan.sources import Column, Deduplication, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import SqlStep
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "spark/spark_watermark.json"
CASES = load_recorded_document(FILE)["cases"] if (ORACLES / FILE).exists() else []
DIFFERENCES = yaml.safe_load((Path(__file__).parent / "spark_differences.yaml").read_text(encoding="utf-8"))
TWO_INPUTS = {"watermark with 2 streams": 15, "MultipleWatermarkPolicy: min": 8}
"""Cases that only read the watermark, with the number of steps before a restart that loses it."""
FOR_EVER = 10**12


LAGGING: dict[str, list[Any]] = {
    "event time and watermark metrics with Trigger.Once (SPARK-24699)": [],
    "test no-data flag = false (aggregation)": [[10, 5]],
}
"""Cases of which only the final rows are compared, with the rows that Spark has not emitted at their end."""
TYPES = {"int": "BIGINT", "bigint": "BIGINT", "string": "STRING", "float32": "FLOAT"}
STATISTICS = "session window - with more aggregation functions and UDAFs"
ONE_INPUT = [case for case in CASES if case["name"] not in TWO_INPUTS]


@pytest.mark.parametrize("case", ONE_INPUT, ids=lambda case: case["name"])
def test_a_case_passes_or_is_listed_with_the_reason(case: dict[str, Any]) -> None:
    if case["name"] in DIFFERENCES:
        pytest.skip(DIFFERENCES[case["name"]])
    run = start_case(case)
    for step in case["steps"]:
        run.run_step(step)
        if "expect" in step:
            assert sorted(run.rows_to_compare(step["expect"]["kind"]), key=repr) == sorted(
                step["expect"]["rows"], key=repr
            )
        if "watermark_after_s" in step:
            assert run.evaluator.watermark == step["watermark_after_s"] * 1_000


@pytest.mark.parametrize("name", LAGGING)
def test_rows_that_spark_emits_later_are_of_windows_behind_the_watermark(name: str) -> None:
    """Rows that Spark has not emitted at the end belong to windows that the watermark has passed."""
    load_recorded_document(FILE)
    (case,) = (case for case in CASES if case["name"] == name)
    run = start_case(case)
    for step in case["steps"]:
        run.run_step(step)
    recorded = [row for step in case["steps"] for row in step.get("expect", {}).get("rows", [])]
    assert [row for row in recorded if row not in run.all_rows] == []
    to_come = [row for row in run.all_rows if row not in recorded]
    assert to_come == LAGGING[name]
    assert all((start + 5) * 1_000 <= run.evaluator.watermark for start, _ in to_come)


@pytest.mark.spark
def test_spark_gives_the_panes_of_the_reference(spark: "SparkSession", tmp_path: Path) -> None:
    load_recorded_document(FILE)
    cases = [case for case in ONE_INPUT if case["name"] not in DIFFERENCES or case["name"] in LAGGING]
    assert len(cases) > 30
    differing = []
    for number, case in enumerate(cases):
        run = start_case(case)
        for step in case["steps"]:
            run.run_step(step)
        ours = describe_spark_panes(spark, run.setup.plan, run.batches_run, tmp_path / str(number))
        theirs = describe_reference_panes(run.setup.plan, run.batches_run, run.setup.steps)
        differing += [(case["name"], ours, theirs)] if ours != theirs else []
    assert differing == []


def test_every_listed_difference_is_a_recorded_case() -> None:
    load_recorded_document(FILE)
    assert set(DIFFERENCES) <= {case["name"] for case in CASES}


@pytest.mark.parametrize(("name", "step_count"), TWO_INPUTS.items())
def test_the_watermark_of_two_inputs_is_the_lower_one(name: str, step_count: int) -> None:
    load_recorded_document(FILE)
    (case,) = (case for case in CASES if case["name"] == name)
    bounds = case["query"]["watermark_delay_s"]
    sources = tuple(build_source(source, bound, None, ["value"]) for source, bound in bounds.items())
    evaluator = Evaluator(
        build_plan(sources, Global(), Default(), (), [AggregateOutput("sum", Sum("value"))], (), 0)
    )
    offset = 0
    for number, step in enumerate(case["steps"][:step_count]):
        added = step.get("add_by_input", step.get("probe_add", {}))
        records = []
        for source, values in added.items():
            for value in values:
                offset += 1
                records.append(InputRecord(source, 0, offset, {"value": value, "ts": value * 1_000}))
        before = evaluator.watermark
        known = frozenset((source, 0) for source in bounds)
        after = evaluator.run(InputBatch(number, 0, tuple(records), known)).watermark
        expect = step.get("expect", {})
        if expect.get("kind") == "watermark_ms_after":
            assert max(after, 0) == expect["value"]
        elif expect.get("kind") == "watermark_s_in_probe_batch":
            assert before == expect["value"] * 1_000


@dataclass
class CaseSetup:
    """The plan of a case, and how a pane becomes a row of Spark's result."""

    plan: Plan
    row: Any
    record: Any
    steps: Any = None
    complete: bool = False


@dataclass
class CaseRun:
    """A case while it runs on the reference."""

    setup: CaseSetup
    evaluator: Evaluator
    all_rows: list[Any] = field(default_factory=list)
    latest: dict[Any, Any] = field(default_factory=dict)
    new_rows: list[Any] = field(default_factory=list)
    batches: int = 0
    offset: int = 0
    batches_run: list[InputBatch] = field(default_factory=list)

    def run_step(self, step: Mapping[str, Any]) -> None:
        if "add" not in step:
            if "clear the sink" in step.get("op", ""):
                self.all_rows.clear()
            return
        records = []
        for item in step["add"]:
            self.offset += 1
            records.append(InputRecord("input", 0, self.offset, self.setup.record(item)))
        self.batches_run.append(InputBatch(self.batches, 0, tuple(records)))
        self.record_outcome(self.evaluator.run(self.batches_run[-1]))
        self.batches += 1

    def record_outcome(self, outcome: EvaluatedBatch) -> None:
        for replaced_window in outcome.replaced:
            self.latest.pop((replaced_window.key, replaced_window.start, replaced_window.end), None)
        for pane in outcome.panes:
            self.latest[pane.key, pane.start, pane.end] = self.setup.row(pane)
        self.new_rows = [self.setup.row(pane) for pane in outcome.panes]
        self.all_rows += self.new_rows

    def rows_to_compare(self, kind: str) -> list[Any]:
        if self.setup.complete:
            return list(self.latest.values())
        return self.all_rows if kind == "all" else self.new_rows


def start_case(case: Mapping[str, Any]) -> CaseRun:
    setup = build_setup(case)
    types = {name: TYPES[kind] for name, _, kind in (each.partition(":") for each in case["query"]["schema"])}
    columns = [Column(rename_reserved_column(name), kind) for name, kind in types.items()]
    setup.plan = replace(
        setup.plan, sources=tuple(with_types(source, columns) for source in setup.plan.sources)
    )
    return CaseRun(setup, Evaluator(setup.plan, setup.steps))


def with_types(source: PlanSource, known: list[Column]) -> PlanSource:
    """Give the columns of a source the types of the case's schema."""
    kinds = {column.name: column.type for column in known} | {"ts": "BIGINT"}
    columns = tuple(replace(column, type=kinds.get(column.name, column.type)) for column in source.columns)
    return replace(source, columns=columns)


def rename_reserved_column(column: str) -> str:
    """Rename a column that begins with _, which is reserved for the engine."""
    return f"column{column}" if column.startswith("_") else column


def build_setup(case: Mapping[str, Any]) -> CaseSetup:
    query, mode = case["query"], case["output_mode"]
    operator, bound = query["operator"], query.get("watermark_delay_s")
    trigger: Trigger = Default() if mode == "append" else Repeatedly(AfterCount(1))
    lateness = FOR_EVER if mode == "complete" else 0
    counts = [AggregateOutput("count", Count())]
    if (
        operator.endswith(("tumbling window 5 s, count(*)", "tumbling window 5 s count(*)"))
        or "itself" in operator
    ):
        size = 1 if "itself" in operator else 5_000
        dedup_fields = ["value"] if operator.startswith("drop") else None
        source = build_source("input", bound, dedup_fields, ["value"])
        plan = build_plan((source,), Fixed(size), trigger, (), counts, (), lateness)
        return CaseSetup(
            plan,
            lambda pane: [pane.start // 1_000, pane.records],
            record_from_value,
            complete=mode == "complete",
        )
    if operator.startswith("split line by space into session ids; session window gap 10 s"):
        source = build_source("input", bound, None, ["line"])
        steps = (SqlStep("SELECT *, explode(split(line, ' ')) AS id FROM input"),)
        plan = build_plan((source,), Sessions(10_000), trigger, ("id",), counts, steps, lateness)
        return CaseSetup(plan, session_row, record_from_line, split_line, complete=mode == "complete")
    if case["name"] == STATISTICS:
        source = build_source("input", bound, None, ["line"])
        numbers = [AggregateOutput("numbers", Custom(("ts",), combiner_ref(Statistics())))]
        plan = build_plan((source,), Sessions(10_000), trigger, ("line",), numbers, (), lateness)
        return CaseSetup(plan, statistics_row, record_from_line)
    if "then group by str sum(num)" in operator:
        source = build_source("input", None, ["str", "num"], ["str", "num"])
        sums = [AggregateOutput("sum", Sum("num"))]
        plan = build_plan((source,), Global(), trigger_each(), ("str",), sums, (), 0)
        row = lambda pane: [pane.key[0], dict(pane.values)["sum"]]  # noqa: E731
        return CaseSetup(plan, row, record_reader(["str", "num"]), complete=mode == "complete")
    return build_deduplication_setup(query, operator, bound)


def build_deduplication_setup(query: Mapping[str, Any], operator: str, bound: float | None) -> CaseSetup:
    """Return a setup with one row for each record that is no duplicate, emitted with its batch."""
    columns = [rename_reserved_column(column.split(":")[0]) for column in query["schema"]]
    by = rename_reserved_column("_1") if " on _1" in operator else "id" if " on id" in operator else None
    ids = [by] if by else ["value"] if "value" in columns else columns
    horizon = int(bound * 1_000) if "WithinWatermark" in operator and bound else None
    window: Window = Global() if bound is None else Fixed(1_000)
    source = build_source("input", bound, ids, columns, horizon)
    plan = build_plan(
        (source,), window, trigger_each(), tuple(columns), [AggregateOutput("count", Count())], (), 0
    )
    keyed = len(columns) > 1
    record = (
        record_reader(columns)
        if keyed
        else record_from_value
        if bound is not None
        else record_reader(columns)
    )
    return CaseSetup(plan, lambda pane: [pack_float(value) for value in pane.key], record)


def trigger_each() -> Trigger:
    return Repeatedly(AfterCount(1))


def build_source(
    name: str, bound: float | None, ids: list[str] | None, columns: list[str], horizon: int | None = None
) -> PlanSource:
    rule = WatermarkStrategy(FOR_EVER if bound is None else int(bound * 1_000))
    dedup_fields = Deduplication(tuple(ids), horizon or FOR_EVER) if ids else None
    with_types = tuple(Column(column, "string") for column in dict.fromkeys([*columns, "ts"]))
    return PlanSource(name, TopicOrigin(name), with_types, "ts", rule, dedup_fields)


def build_plan(
    sources: tuple[PlanSource, ...],
    window: Window,
    trigger: Trigger,
    key: tuple[str, ...],
    outputs: list[AggregateOutput],
    steps: tuple[SqlStep, ...],
    lateness: int,
) -> Plan:
    names = tuple(source.name for source in sources)
    stage = Stage(
        "case", names, window, tuple(outputs), steps, key, trigger, lateness, sinks=(PaneLog("case"),)
    )
    return Plan("case", sources, (stage,))


def record_from_value(item: Any) -> dict[str, Any]:
    return {"value": item, "ts": item * 1_000}


def record_from_line(item: Any) -> dict[str, Any]:
    return {"line": item[0], "ts": item[1] * 1_000}


def record_reader(columns: list[str]) -> Any:
    def record(item: Any) -> dict[str, Any]:
        values = item if isinstance(item, list) else [item]
        fields = {name: unpack_float(value) for name, value in zip(columns, values, strict=True)}
        time = next((fields[name] for name in fields if name in ("t_s", "time_s")), 0)
        return {**fields, "ts": time * 1_000}

    return record


def split_line(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from ({"id": word, "ts": fields["ts"]} for word in fields["line"].split(" "))


def session_row(pane: Any) -> list[Any]:
    start, end = pane.start // 1_000, pane.end // 1_000
    return [pane.key[0], start, end, end - start, pane.records]


class Statistics:
    """Mean, median, deviation, variance and sum of seconds. The partials are whole lists."""

    partial_type = pa.list_(pa.int64())
    result_type = pa.list_(pa.float64())
    can_subtract = False

    def add(self, values: pa.Table, groups: Any, count: int) -> pa.Array:
        found: list[list[int]] = [[] for _ in range(count)]
        for value, group in zip(values.column(0).to_pylist(), groups, strict=True):
            found[group].append(value // 1_000)
        return pa.array(found, self.partial_type)

    def merge(self, partials: pa.Array, groups: Any, count: int) -> pa.Array:
        found: list[list[int]] = [[] for _ in range(count)]
        for some, group in zip(partials.to_pylist(), groups, strict=True):
            found[group] += some or []
        return pa.array(found, self.partial_type)

    def subtract(self, partials: pa.Array, others: pa.Array) -> pa.Array:
        raise NotImplementedError

    def result(self, partials: pa.Array) -> pa.Array:
        told = [
            [float(of(some)) if len(some) > 1 else 0.0 for of in (mean, median, stdev, variance, sum)]
            for some in partials.to_pylist()
        ]
        return pa.array(told, self.result_type)


def statistics_row(pane: Any) -> list[Any]:
    numbers = [int(number) for number in dict(pane.values)["numbers"]]
    return [pane.key[0], pane.start // 1_000, pane.end // 1_000, *numbers]


def unpack_float(value: Any) -> Any:
    """Read a 32-bit float from its bits."""
    if isinstance(value, dict):
        (found,) = struct.unpack(">f", bytes.fromhex(value["float32_bits"][2:]))
        return found
    return value


def pack_float(value: Any) -> Any:
    if isinstance(value, float):
        return {"float32_bits": "0x" + struct.pack(">f", value).hex()}
    return value
