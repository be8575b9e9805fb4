"""Run a whole graph in the engine and in the reference: records of two inputs in, panes of every stage out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.pipelines.engine.operators.duckdb_partials import find_windows
from tests.pipelines.engine.operators.graph_runner import GraphRunner
from tests.pipelines.engine.operators.test_windows_against_reference import (
    COLUMNS,
    FIELDS,
    clamp_time,
    make_pane_row,
)

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.conformance.reference.predicates import matches_predicate
from penstock.engine.columnar import as_arrow
from penstock.engine.operators.changelog.changes_to_partials import apply_steps
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.ordered.state_schema import MATCHED_FIELD
from penstock.engine.operators.stage_graph import CompiledGraph, compile_graph
from penstock.engine.plan.sources import PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.windows.sessions import Sessions

Rows = list[tuple[Any, ...]]
CLICKS = PlanSource("clicks", TopicOrigin("clicks"), COLUMNS, "at")
VIEWS = PlanSource("views", TopicOrigin("views"), COLUMNS, "at")
ADDRESS_FIELDS = [
    ("_input", pa.string()),
    ("_topic", pa.string()),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
]
ADDRESS_COLUMNS = ("_topic", "_partition", "_offset")
ELEMENT_SCHEMA = pa.schema(
    [*FIELDS, pa.field("_time", pa.int64()), *(pa.field(*each) for each in ADDRESS_FIELDS)]
)


def split_inputs(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches, with every second record from views and the others from clicks."""
    return [replace(batch, records=tuple(map(rename_source, batch.records))) for batch in batches]


def rename_source(record: InputRecord) -> InputRecord:
    return replace(record, source=("clicks", "views")[(record.partition + record.offset) % 2])


def run_reference(plan: Plan, batches: Sequence[InputBatch]) -> list[dict[str, Rows]]:
    evaluator = Evaluator(plan)
    rows_by_batch = []
    for outcome in map(evaluator.run, batches):
        panes = {plan.first_source_stage.name: outcome.panes, **outcome.stage_panes}
        rows_by_batch.append(
            {name: sorted(map(make_pane_row, rows), key=repr) for name, rows in panes.items()}
        )
    return rows_by_batch


def run_engine(plan: Plan, batches: Sequence[InputBatch], folder: Path) -> list[dict[str, Rows]]:
    runner = GraphRunner(compile_plan_graph(plan), folder)
    rows_by_batch = []
    for batch in batches:
        watermark = MAX_TIMESTAMP_MS if batch.is_last else int(batch.watermark or 0)
        inputs = {stage.plan.name: build_input(stage, batch) for stage in runner.graph.record_stages}
        results, _ = runner.run(inputs, batch.clock, watermark)
        rows_by_batch.append({name: list_pane_rows(result.panes) for name, result in results.items()})
    return rows_by_batch


def compile_plan_graph(plan: Plan) -> CompiledGraph:
    """Compile the plan, with the field types that its steps leave."""
    types = {
        stage.name: {field.name: field.type for field in read_elements(stage, ()).schema}
        for stage in plan.source_stages
    }
    return compile_graph(plan, types)


def build_input(stage: CompiledStage, batch: InputBatch) -> pa.Table:
    """A partial for each record in each of its windows, or single records."""
    elements = read_elements(stage.plan, batch.records)
    if stage.is_ordered:
        condition = stage.plan.window.record_condition
        if condition is not None:
            matches = pa.array(
                [matches_predicate(row, condition) for row in elements.to_pylist()], pa.bool_()
            )
            elements = elements.append_column(MATCHED_FIELD, matches)
        return elements.select(["_topic", "_partition", *stage.partial_schema.names])
    times = elements.column("_time").to_pylist()
    windows = [
        (number, time, *map(clamp_time, bounds))
        for number, time in enumerate(times)
        for bounds in find_windows(stage.plan.window, time, batch.clock)
    ]
    number, time, start, end = (np.array(column, np.int64) for column in transpose(windows, 4))
    elements = elements.take(pa.array(number))
    for column in stage.restricted_columns:
        elements = elements.append_column(column.name, column.from_changes(elements))
    rows = elements.to_pylist()
    gap = stage.plan.window.gap if isinstance(stage.plan.window, Sessions) else 0
    columns = {
        **{field.name: elements.column(field.name) for field in stage.key},
        "window_start": pa.array(start),
        "window_end": pa.array(end),
        "piece_start": pa.array(time),
        "piece_end": pa.array(time + gap),
        "elements": pa.array(np.ones(len(number), np.int64)),
        **{
            f"matches_{i}": pa.array([int(matches_predicate(row, predicate)) for row in rows], pa.int64())
            for i, predicate in enumerate(stage.predicates)
        },
        **{part.name: as_arrow(part.lift(elements), part.type) for part in stage.parts},
    }
    schema = stage.partial_schema
    return pa.table([columns[field.name] for field in schema], schema=schema)


def read_elements(stage: Stage, records: Iterable[InputRecord]) -> pa.Table:
    """The elements of a stage, after its steps."""
    tables = []
    for name in stage.inputs:
        rows = [
            {**record.fields, "_time": record.fields["at"], "_input": name}
            | dict(zip(ADDRESS_COLUMNS, record.address, strict=True))
            for record in records
            if record.source == name
        ]
        tables.append(
            apply_steps(stage.steps_of_input(name), pa.Table.from_pylist(rows, schema=ELEMENT_SCHEMA))
        )
    return apply_steps(stage.steps, pa.concat_tables(tables, promote_options="default")).combine_chunks()


def transpose(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def list_pane_rows(panes: pa.Table) -> Rows:
    rows = [row for row in panes.to_pylist() if row["kind"] != "replaced"]
    visible_rows = [{n: v for n, v in row.items() if not n.startswith("replaced_by")} for row in rows]
    return sorted((tuple(to_hashable(v) for v in row.values()) for row in visible_rows), key=repr)


def to_hashable(value: Any) -> Any:
    return tuple(map(to_hashable, value)) if isinstance(value, list) else value
