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
from tests.pipelines.engine.aggregates.typed_elements import EVERY, FIELDS, fields, table_of
from tests.pipelines.engine.operators.duckdb_partials import places
from tests.pipelines.engine.operators.test_windows_against_reference import instant, pane_row

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
OF_THE_REFERENCES_TYPE = [of for of in EVERY if "price" not in of.used_fields]
"""The reference returns a mean of decimals as a decimal, the engine as a float."""

of_time = st.one_of(
    st.builds(Fixed, st.integers(3, 12)),
    st.builds(Sliding, st.integers(3, 9), st.integers(2, 4)),
    st.builds(Sessions, st.integers(2, 6)),
)
of_order = st.one_of(
    st.builds(Tumbling, st.builds(CountPolicy, st.integers(1, 4))),
    st.builds(SlidingOrder, st.builds(CountPolicy, st.integers(1, 4)), st.just(CountPolicy(1))),
)


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    chosen: list[Aggregate] = draw(st.lists(st.sampled_from(OF_THE_REFERENCES_TYPE), min_size=1, max_size=3))
    outputs = tuple(AggregateOutput(f"out_{number}", of) for number, of in enumerate(chosen))
    if draw(st.integers(0, 4)) == 0:
        return Stage("stage", ("records",), draw(of_order), outputs, key=("key",))
    return Stage(
        "stage",
        ("records",),
        draw(of_time),
        outputs,
        key=("key",),
        trigger=draw(st.sampled_from([Repeatedly(AfterCount(1)), AfterWatermark(early=AfterCount(2))])),
        lateness=draw(st.sampled_from([0, 8, 10**9])),
        accumulation=draw(st.sampled_from(["discarding", "accumulating", "retracting"])),
    )


@st.composite
def histories(draw: st.DrawFn, stage: Stage) -> list[InputBatch]:
    """Batches with rising watermarks, and an end."""
    read = {name for output in stage.aggregates for name in output.aggregate.used_fields}
    batches: list[InputBatch] = []
    watermark, offsets = 0, [0, 0]
    for number in range(draw(st.integers(1, 4))):
        watermark += draw(st.integers(0, 8))
        records = []
        for content in draw(st.lists(fields(*sorted(read)), max_size=5)):
            partition = draw(st.integers(0, 1))
            named = {"key": draw(st.sampled_from(["a", "b"])), "at": draw(st.integers(0, 30))}
            records.append(InputRecord("records", partition, offsets[partition], content | named))
            offsets[partition] += 1
        batches.append(InputBatch(number, number, tuple(records), watermark=watermark))
    return [*batches, InputBatch(len(batches), len(batches), is_last=True)]


def elements_of(records: Sequence[InputRecord]) -> pa.Table:
    """Records as elements, with their keys."""
    table = table_of([StageElement((), r.fields["at"], r.address, r.fields) for r in records])
    keys = pa.array([record.fields["key"] for record in records], pa.string())
    return table.append_column("key", keys)


def partials(stage: CompiledStage, records: Sequence[InputRecord]) -> pa.Table:
    """Partials by partition, key and window, each merged from its elements."""
    if stage.is_ordered:
        return elements_of(records[::-1])
    window = stage.plan.window
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position, record in enumerate(records):
        for start, end in places(window, record.fields["at"], 0):
            groups[record.fields["key"], int(start), int(end), record.partition].append(position)
    rows = new_rows([part.state_column for part in stage.parts], len(groups))
    chosen = [position for members in groups.values() for position in members]
    of = [number for number, members in enumerate(groups.values()) for _ in members]
    every = elements_of([records[position] for position in chosen])
    merge_partials(stage.parts, rows, np.array(of, np.int64), lift_elements(stage.parts, every))
    times = [[records[position].fields["at"] for position in members] for members in groups.values()]
    gap = window.gap if isinstance(window, Sessions) else 0
    known = {
        "key": [key for key, *_ in groups],
        "window_start": [start for _, start, _, _ in groups],
        "window_end": [end for _, _, end, _ in groups],
        "piece_start": [min(some) for some in times],
        "piece_end": [max(some) + gap for some in times],
        "elements": [len(some) for some in times],
    }
    made = rows.to_table(pa.schema([pa.field(part.name, part.type) for part in stage.parts]))
    columns = [
        made.column(field.name)
        if field.name in made.column_names
        else pa.array(known[field.name], field.type)
        for field in stage.partial_schema
    ]
    return pa.table(columns, schema=stage.partial_schema)


def engine(stage: Stage, batches: Sequence[InputBatch], folder: Path) -> list[list[tuple[Any, ...]]]:
    ready = compile_stage(stage, TYPES)
    tree = trees.create_empty_tree(ready.state_schema)
    clock, watermark = MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS
    width = len(ready.key) + len(ready.accumulators) + 11
    answers = []
    for batch in batches:
        after = MAX_TIMESTAMP_MS if batch.is_last else instant(batch.watermark or 0)
        moment = BatchTime(batch.id, clock, batch.clock, watermark, after)
        outcome = process_batch(ready, tree, partials(ready, batch.records), moment)
        tree = tree.with_run(outcome.changed_state, folder / f"run-{batch.id}.arrow").compact(folder)
        panes = [row for row in outcome.panes.to_pylist() if row["kind"] != "replaced"]
        rows = [canonicalize(tuple(row.values()))[:width] for row in panes]
        answers.append(sorted(rows, key=repr))
        clock, watermark = batch.clock, after
    return answers


def reference(stage: Stage, batches: Sequence[InputBatch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    return [sorted((pane_row(pane) for pane in evaluator.run(batch).panes), key=repr) for batch in batches]


@settings(max_examples=scale_examples(35), deadline=None, suppress_health_check=list(HealthCheck))
@given(stage=stages(), data=st.data())
def test_every_aggregate_in_every_window_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, data: st.DataObject
) -> None:
    batches = data.draw(histories(stage))
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
