"""Spark's own cases of watermarks, sessions and deduplication, batch by batch."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median, stdev, variance
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from tests.pipelines.conformance.recorded.spark_evaluation import said_by_reference, said_by_spark
from tests.pipelines.recorded_answers import ORACLES, load_recorded_document

from penstock.conformance.reference import EvaluatedBatch, Evaluator, InputBatch, InputRecord
from penstock.engine.definition.user_functions import combiner_ref
from penstock.engine.plan import (
    AfterCount,
    AggregateOutput,
    Column,
    Count,
    Custom,
    Deduplication,
    Default,
    Fixed,
    Global,
    Plan,
    PlanSource,
    Repeatedly,
    Sessions,
    SqlStep,
    Stage,
    Sum,
    TopicOrigin,
    Trigger,
    WatermarkStrategy,
    Window,
)
from penstock.engine.sinks.pane_log import PaneLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "spark/spark_watermark.json"
CASES = load_recorded_document(FILE)["cases"] if (ORACLES / FILE).exists() else []
DIFFERENCES = yaml.safe_load((Path(__file__).parent / "spark_differences.yaml").read_text(encoding="utf-8"))
TWO_INPUTS = {"watermark with 2 streams": 15, "MultipleWatermarkPolicy: min": 8}
"""Cases that only ask for the watermark, and how many of their steps come before a restart that forgets."""
FOR_EVER = 10**12


LAGGING: dict[str, list[Any]] = {
    "event time and watermark metrics with Trigger.Once (SPARK-24699)": [],
    "test no-data flag = false (aggregation)": [[10, 5]],
}
"""Cases of which the last rows alone are compared, and the rows that Spark has still to show when they end."""
TYPES = {"int": "BIGINT", "bigint": "BIGINT", "string": "STRING", "float32": "FLOAT"}
STATISTICS = "session window - with more aggregation functions and UDAFs"
ONE_INPUT = [case for case in CASES if case["name"] not in TWO_INPUTS]


@pytest.mark.parametrize("case", ONE_INPUT, ids=lambda case: case["name"])
def test_a_case_of_spark_comes_out_the_same_or_is_listed_with_the_reason(case: dict[str, Any]) -> None:
    if case["name"] in DIFFERENCES:
        pytest.skip(DIFFERENCES[case["name"]])
    run = run_of(case)
    for step in case["steps"]:
        run.take(step)
        if "expect" in step:
            assert sorted(run.shown(step["expect"]["kind"]), key=repr) == sorted(
                step["expect"]["rows"], key=repr
            )
        if "watermark_after_s" in step:
            assert run.evaluator.watermark == step["watermark_after_s"] * 1_000


@pytest.mark.parametrize("name", LAGGING)
def test_where_output_of_spark_lags_its_windows_have_the_same_values(name: str) -> None:
    """What Spark has not shown when the case ends are windows that the watermark has passed."""
    load_recorded_document(FILE)
    (case,) = (case for case in CASES if case["name"] == name)
    run = run_of(case)
    for step in case["steps"]:
        run.take(step)
    recorded = [row for step in case["steps"] for row in step.get("expect", {}).get("rows", [])]
    assert [row for row in recorded if row not in run.everything] == []
    to_come = [row for row in run.everything if row not in recorded]
    assert to_come == LAGGING[name]
    assert all((start + 5) * 1_000 <= run.evaluator.watermark for start, _ in to_come)


@pytest.mark.spark
def test_every_case_comes_out_on_spark_as_it_does_in_the_reference(
    spark: "SparkSession", tmp_path: Path
) -> None:
    load_recorded_document(FILE)
    cases = [case for case in ONE_INPUT if case["name"] not in DIFFERENCES or case["name"] in LAGGING]
    assert len(cases) > 30
    differing = []
    for number, case in enumerate(cases):
        run = run_of(case)
        for step in case["steps"]:
            run.take(step)
        ours = said_by_spark(spark, run.how.plan, run.ran, tmp_path / str(number))
        theirs = said_by_reference(run.how.plan, run.ran, run.how.steps)
        differing += [(case["name"], ours, theirs)] if ours != theirs else []
    assert differing == []


def test_the_recorded_cases_are_there() -> None:
    load_recorded_document(FILE)
    assert set(DIFFERENCES) <= {case["name"] for case in CASES}


@pytest.mark.parametrize(("name", "upto"), TWO_INPUTS.items())
def test_the_watermark_of_two_inputs_is_the_lower_one(name: str, upto: int) -> None:
    load_recorded_document(FILE)
    (case,) = (case for case in CASES if case["name"] == name)
    bounds = case["query"]["watermark_delay_s"]
    sources = tuple(source_of(source, bound, None, ["value"]) for source, bound in bounds.items())
    evaluator = Evaluator(
        plan_of(sources, Global(), Default(), (), [AggregateOutput("sum", Sum("value"))], (), 0)
    )
    offset = 0
    for number, step in enumerate(case["steps"][:upto]):
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
class Way:
    """How a case is run here, and what a row of Spark's result is of a pane."""

    plan: Plan
    row: Any
    record: Any
    steps: Any = None
    complete: bool = False


@dataclass
class Run:
    """A case at work."""

    how: Way
    evaluator: Evaluator
    everything: list[Any] = field(default_factory=list)
    latest: dict[Any, Any] = field(default_factory=dict)
    new: list[Any] = field(default_factory=list)
    batches: int = 0
    offset: int = 0
    ran: list[InputBatch] = field(default_factory=list)

    def take(self, step: Mapping[str, Any]) -> None:
        if "add" not in step:
            if "clear the sink" in step.get("op", ""):
                self.everything.clear()
            return
        records = []
        for item in step["add"]:
            self.offset += 1
            records.append(InputRecord("input", 0, self.offset, self.how.record(item)))
        self.ran.append(InputBatch(self.batches, 0, tuple(records)))
        self.note(self.evaluator.run(self.ran[-1]))
        self.batches += 1

    def note(self, outcome: EvaluatedBatch) -> None:
        for gone in outcome.replaced:
            self.latest.pop((gone.key, gone.start, gone.end), None)
        for pane in outcome.panes:
            self.latest[pane.key, pane.start, pane.end] = self.how.row(pane)
        self.new = [self.how.row(pane) for pane in outcome.panes]
        self.everything += self.new

    def shown(self, kind: str) -> list[Any]:
        if self.how.complete:
            return list(self.latest.values())
        return self.everything if kind == "all" else self.new


def run_of(case: Mapping[str, Any]) -> Run:
    how = way_of(case)
    types = {name: TYPES[kind] for name, _, kind in (each.partition(":") for each in case["query"]["schema"])}
    columns = [Column(named(name), kind) for name, kind in types.items()]
    how.plan = replace(how.plan, sources=tuple(typed(source, columns) for source in how.plan.sources))
    return Run(how, Evaluator(how.plan, how.steps))


def typed(source: PlanSource, known: list[Column]) -> PlanSource:
    """A source whose columns have the types of a case's schema."""
    kinds = {column.name: column.type for column in known} | {"ts": "BIGINT"}
    columns = tuple(replace(column, type=kinds.get(column.name, column.type)) for column in source.columns)
    return replace(source, columns=columns)


def named(column: str) -> str:
    """Columns that begin with _ are the engine's own."""
    return f"column{column}" if column.startswith("_") else column


def way_of(case: Mapping[str, Any]) -> Way:
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
        repeats = ["value"] if operator.startswith("drop") else None
        source = source_of("input", bound, repeats, ["value"])
        plan = plan_of((source,), Fixed(size), trigger, (), counts, (), lateness)
        return Way(
            plan, lambda pane: [pane.start // 1_000, pane.records], by_value, complete=mode == "complete"
        )
    if operator.startswith("split line by space into session ids; session window gap 10 s"):
        source = source_of("input", bound, None, ["line"])
        steps = (SqlStep("SELECT *, explode(split(line, ' ')) AS id FROM input"),)
        plan = plan_of((source,), Sessions(10_000), trigger, ("id",), counts, steps, lateness)
        return Way(plan, session_row, by_line, split_line, complete=mode == "complete")
    if case["name"] == STATISTICS:
        source = source_of("input", bound, None, ["line"])
        numbers = [AggregateOutput("numbers", Custom(("ts",), combiner_ref(Statistics())))]
        plan = plan_of((source,), Sessions(10_000), trigger, ("line",), numbers, (), lateness)
        return Way(plan, statistics_row, by_line)
    if "then group by str sum(num)" in operator:
        source = source_of("input", None, ["str", "num"], ["str", "num"])
        sums = [AggregateOutput("sum", Sum("num"))]
        plan = plan_of((source,), Global(), trigger_each(), ("str",), sums, (), 0)
        row = lambda pane: [pane.key[0], dict(pane.values)["sum"]]  # noqa: E731
        return Way(plan, row, by_columns(["str", "num"]), complete=mode == "complete")
    return deduplicating(query, operator, bound)


def deduplicating(query: Mapping[str, Any], operator: str, bound: float | None) -> Way:
    """What is let through, one row a record: a window of its own second, shown with the batch that brings it."""
    columns = [named(column.split(":")[0]) for column in query["schema"]]
    by = named("_1") if " on _1" in operator else "id" if " on id" in operator else None
    ids = [by] if by else ["value"] if "value" in columns else columns
    horizon = int(bound * 1_000) if "WithinWatermark" in operator and bound else None
    window: Window = Global() if bound is None else Fixed(1_000)
    source = source_of("input", bound, ids, columns, horizon)
    plan = plan_of(
        (source,), window, trigger_each(), tuple(columns), [AggregateOutput("count", Count())], (), 0
    )
    keyed = len(columns) > 1
    record = by_columns(columns) if keyed else by_value if bound is not None else by_columns(columns)
    return Way(plan, lambda pane: [unpacked(value) for value in pane.key], record)


def trigger_each() -> Trigger:
    return Repeatedly(AfterCount(1))


def source_of(
    name: str, bound: float | None, ids: list[str] | None, columns: list[str], horizon: int | None = None
) -> PlanSource:
    rule = WatermarkStrategy(FOR_EVER if bound is None else int(bound * 1_000))
    repeats = Deduplication(tuple(ids), horizon or FOR_EVER) if ids else None
    typed = tuple(Column(column, "string") for column in dict.fromkeys([*columns, "ts"]))
    return PlanSource(name, TopicOrigin(name), typed, "ts", rule, repeats)


def plan_of(
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


def by_value(item: Any) -> dict[str, Any]:
    return {"value": item, "ts": item * 1_000}


def by_line(item: Any) -> dict[str, Any]:
    return {"line": item[0], "ts": item[1] * 1_000}


def by_columns(columns: list[str]) -> Any:
    def record(item: Any) -> dict[str, Any]:
        values = item if isinstance(item, list) else [item]
        fields = {name: packed(value) for name, value in zip(columns, values, strict=True)}
        time = next((fields[name] for name in fields if name in ("t_s", "time_s")), 0)
        return {**fields, "ts": time * 1_000}

    return record


def split_line(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from ({"id": word, "ts": fields["ts"]} for word in fields["line"].split(" "))


def session_row(pane: Any) -> list[Any]:
    start, end = pane.start // 1_000, pane.end // 1_000
    return [pane.key[0], start, end, end - start, pane.records]


class Statistics:
    """Mean, median, deviation, variance and sum of seconds: whole lists are kept, as these are few."""

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


def packed(value: Any) -> Any:
    """A 32-bit float by its bits."""
    if isinstance(value, dict):
        (found,) = struct.unpack(">f", bytes.fromhex(value["float32_bits"][2:]))
        return found
    return value


def unpacked(value: Any) -> Any:
    if isinstance(value, float):
        return {"float32_bits": "0x" + struct.pack(">f", value).hex()}
    return value
