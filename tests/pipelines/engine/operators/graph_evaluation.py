"""Run a whole graph in the engine and in the reference: records of two inputs in, panes of every stage out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.pipelines.engine.operators.duckdb_partials import places
from tests.pipelines.engine.operators.graph_runner import GraphRunner
from tests.pipelines.engine.operators.test_windows_against_reference import COLUMNS, FIELDS, instant, pane_row

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
ADDRESS = [
    ("_input", pa.string()),
    ("_topic", pa.string()),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
]
PLACE = ("_topic", "_partition", "_offset")
READ = pa.schema([*FIELDS, pa.field("_time", pa.int64()), *(pa.field(*each) for each in ADDRESS)])


def split_inputs(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches, with every second record from views and the others from clicks."""
    return [replace(batch, records=tuple(map(renamed, batch.records))) for batch in batches]


def renamed(record: InputRecord) -> InputRecord:
    return replace(record, source=("clicks", "views")[(record.partition + record.offset) % 2])


def reference(plan: Plan, batches: Sequence[InputBatch]) -> list[dict[str, Rows]]:
    evaluator = Evaluator(plan)
    answers = []
    for outcome in map(evaluator.run, batches):
        panes = {plan.first_source_stage.name: outcome.panes, **outcome.stage_panes}
        answers.append({name: sorted(map(pane_row, rows), key=repr) for name, rows in panes.items()})
    return answers


def engine(plan: Plan, batches: Sequence[InputBatch], folder: Path) -> list[dict[str, Rows]]:
    graph = GraphRunner(graph_of(plan), folder)
    answers = []
    for batch in batches:
        after = MAX_TIMESTAMP_MS if batch.is_last else int(batch.watermark or 0)
        came = {stage.plan.name: input_for(stage, batch) for stage in graph.graph.record_stages}
        accepted, _ = graph.run(came, batch.clock, after)
        answers.append({name: shown(one.panes) for name, one in accepted.items()})
    return answers


def graph_of(plan: Plan) -> CompiledGraph:
    """Compile the plan, with the field types that its steps leave."""
    types = {stage.name: {f.name: f.type for f in read(stage, ()).schema} for stage in plan.source_stages}
    return compile_graph(plan, types)


def input_for(stage: CompiledStage, batch: InputBatch) -> pa.Table:
    """A partial for each record in each of its windows, or single records."""
    elements = read(stage.plan, batch.records)
    if stage.is_ordered:
        condition = stage.plan.window.record_condition
        if condition is not None:
            met = pa.array([matches_predicate(row, condition) for row in elements.to_pylist()], pa.bool_())
            elements = elements.append_column(MATCHED_FIELD, met)
        return elements.select(["_topic", "_partition", *stage.partial_schema.names])
    times = elements.column("_time").to_pylist()
    found = [
        (number, time, *map(instant, bounds))
        for number, time in enumerate(times)
        for bounds in places(stage.plan.window, time, batch.clock)
    ]
    number, time, start, end = (np.array(column, np.int64) for column in transposed(found, 4))
    elements = elements.take(pa.array(number))
    for each in stage.restricted_columns:
        elements = elements.append_column(each.name, each.from_changes(elements))
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
            f"matches_{i}": pa.array([int(matches_predicate(row, what)) for row in rows], pa.int64())
            for i, what in enumerate(stage.predicates)
        },
        **{part.name: as_arrow(part.lift(elements), part.type) for part in stage.parts},
    }
    schema = stage.partial_schema
    return pa.table([columns[field.name] for field in schema], schema=schema)


def read(stage: Stage, records: Iterable[InputRecord]) -> pa.Table:
    """The elements of a stage, after its steps."""
    pieces = []
    for name in stage.inputs:
        rows = [
            {**record.fields, "_time": record.fields["at"], "_input": name}
            | dict(zip(PLACE, record.address, strict=True))
            for record in records
            if record.source == name
        ]
        pieces.append(apply_steps(stage.steps_of_input(name), pa.Table.from_pylist(rows, schema=READ)))
    return apply_steps(stage.steps, pa.concat_tables(pieces, promote_options="default")).combine_chunks()


def transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def shown(panes: pa.Table) -> Rows:
    rows = [row for row in panes.to_pylist() if row["kind"] != "replaced"]
    ours = [{n: v for n, v in row.items() if not n.startswith("replaced_by")} for row in rows]
    return sorted((tuple(as_values(v) for v in row.values()) for row in ours), key=repr)


def as_values(value: Any) -> Any:
    return tuple(map(as_values, value)) if isinstance(value, list) else value
