"""Every aggregate in every window and accumulation mode equals the reference, pane for pane."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.aggregates.typed_elements import (
    ALL_AGGREGATES,
    FIELDS,
    element_fields,
    make_element_table,
)
from tests.pipelines.engine.operators.duckdb_partials import find_windows
from tests.pipelines.engine.operators.test_windows_against_reference import clamp_time, make_pane_row

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.engine.aggregates import lift_elements, merge_partials
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import new_rows
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.tumbling import Tumbling

TYPES = {"key": pa.string(), "at": pa.int64(), **{field.name: field.type for field in FIELDS}}
SOURCE = PlanSource("records", TopicOrigin("records"), tuple(Column(name, "ANY") for name in TYPES), "at")
COMPARABLE_AGGREGATES = [aggregate for aggregate in ALL_AGGREGATES if "price" not in aggregate.used_fields]
"""The reference returns a mean of decimals as a decimal, the engine as a float."""

time_windows = st.one_of(
    st.builds(Fixed, st.integers(3, 12)),
    st.builds(Sliding, st.integers(3, 9), st.integers(2, 4)),
    st.builds(Sessions, st.integers(2, 6)),
)
order_windows = st.one_of(
    st.builds(Tumbling, st.builds(CountPolicy, st.integers(1, 4))),
    st.builds(SlidingOrder, st.builds(CountPolicy, st.integers(1, 4)), st.just(CountPolicy(1))),
)


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    aggregates: list[Aggregate] = draw(
        st.lists(st.sampled_from(COMPARABLE_AGGREGATES), min_size=1, max_size=3)
    )
    outputs = tuple(
        AggregateOutput(f"out_{number}", aggregate) for number, aggregate in enumerate(aggregates)
    )
    if draw(st.integers(0, 4)) == 0:
        return Stage("stage", ("records",), draw(order_windows), outputs, key=("key",))
    return Stage(
        "stage",
        ("records",),
        draw(time_windows),
        outputs,
        key=("key",),
        trigger=draw(st.sampled_from([Repeatedly(AfterCount(1)), AfterWatermark(early=AfterCount(2))])),
        lateness=draw(st.sampled_from([0, 8, 10**9])),
        accumulation=draw(st.sampled_from(["discarding", "accumulating", "retracting"])),
    )


@st.composite
def histories(draw: st.DrawFn, stage: Stage) -> list[InputBatch]:
    """Batches with rising watermarks, and an end."""
    used_fields = {name for output in stage.aggregates for name in output.aggregate.used_fields}
    batches: list[InputBatch] = []
    watermark, offsets = 0, [0, 0]
    for number in range(draw(st.integers(1, 4))):
        watermark += draw(st.integers(0, 8))
        records = []
        for content in draw(st.lists(element_fields(*sorted(used_fields)), max_size=5)):
            partition = draw(st.integers(0, 1))
            key_and_time = {"key": draw(st.sampled_from(["a", "b"])), "at": draw(st.integers(0, 30))}
            records.append(InputRecord("records", partition, offsets[partition], content | key_and_time))
            offsets[partition] += 1
        batches.append(InputBatch(number, number, tuple(records), watermark=watermark))
    return [*batches, InputBatch(len(batches), len(batches), is_last=True)]


def make_keyed_elements(records: Sequence[InputRecord]) -> pa.Table:
    """Records as elements, with their keys."""
    table = make_element_table([StageElement((), r.fields["at"], r.address, r.fields) for r in records])
    keys = pa.array([record.fields["key"] for record in records], pa.string())
    return table.append_column("key", keys)


def compute_partials(stage: CompiledStage, records: Sequence[InputRecord]) -> pa.Table:
    """Partials by partition, key and window, each merged from its elements."""
    if stage.is_ordered:
        return make_keyed_elements(records[::-1])
    window = stage.plan.window
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position, record in enumerate(records):
        for start, end in find_windows(window, record.fields["at"], 0):
            groups[record.fields["key"], int(start), int(end), record.partition].append(position)
    rows = new_rows([part.state_column for part in stage.parts], len(groups))
    positions = [position for members in groups.values() for position in members]
    group_of_position = [number for number, members in enumerate(groups.values()) for _ in members]
    elements = make_keyed_elements([records[position] for position in positions])
    merge_partials(
        stage.parts, rows, np.array(group_of_position, np.int64), lift_elements(stage.parts, elements)
    )
    times = [[records[position].fields["at"] for position in members] for members in groups.values()]
    gap = window.gap if isinstance(window, Sessions) else 0
    columns_by_name = {
        "key": [key for key, *_ in groups],
        "window_start": [start for _, start, _, _ in groups],
        "window_end": [end for _, _, end, _ in groups],
        "piece_start": [min(times_of_group) for times_of_group in times],
        "piece_end": [max(times_of_group) + gap for times_of_group in times],
        "elements": [len(times_of_group) for times_of_group in times],
    }
    aggregate_columns = rows.to_table(pa.schema([pa.field(part.name, part.type) for part in stage.parts]))
    columns = [
        aggregate_columns.column(field.name)
        if field.name in aggregate_columns.column_names
        else pa.array(columns_by_name[field.name], field.type)
        for field in stage.partial_schema
    ]
    return pa.table(columns, schema=stage.partial_schema)


def run_engine(stage: Stage, batches: Sequence[InputBatch], folder: Path) -> list[list[tuple[Any, ...]]]:
    compiled_stage = compile_stage(stage, TYPES)
    tree = trees.create_empty_tree(compiled_stage.state_schema)
    clock, watermark = MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS
    width = len(compiled_stage.key) + len(compiled_stage.accumulators) + 11
    rows_by_batch = []
    for batch in batches:
        next_watermark = MAX_TIMESTAMP_MS if batch.is_last else clamp_time(batch.watermark or 0)
        batch_time = BatchTime(batch.id, clock, batch.clock, watermark, next_watermark)
        outcome = process_batch(
            compiled_stage, tree, compute_partials(compiled_stage, batch.records), batch_time
        )
        tree = tree.with_run(outcome.changed_state, folder / f"run-{batch.id}.arrow").compact(folder)
        panes = [row for row in outcome.panes.to_pylist() if row["kind"] != "replaced"]
        rows = [canonicalize(tuple(row.values()))[:width] for row in panes]
        rows_by_batch.append(sorted(rows, key=repr))
        clock, watermark = batch.clock, next_watermark
    return rows_by_batch


def run_reference(stage: Stage, batches: Sequence[InputBatch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    return [
        sorted((make_pane_row(pane) for pane in evaluator.run(batch).panes), key=repr) for batch in batches
    ]


@settings(max_examples=scale_examples(35), deadline=None, suppress_health_check=list(HealthCheck))
@given(stage=stages(), data=st.data())
def test_every_aggregate_in_every_window_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, data: st.DataObject
) -> None:
    batches = data.draw(histories(stage))
    assert run_engine(stage, batches, tmp_path_factory.mktemp("state")) == run_reference(stage, batches)
