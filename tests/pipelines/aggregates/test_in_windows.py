"""Every aggregate in every kind of window and every mode: the fold says what the reference says, pane for pane."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.pipelines.aggregates.elements import EVERY, FIELDS, fields, table_of
from tests.pipelines.fold.partials import places
from tests.pipelines.fold.test_windows_against_reference import instant, said

from penstock.pipelines.fold.aggregates import lifted, merge_into
from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import fresh
from penstock.pipelines.fold.stage import ReadyStage, ready_stage
from penstock.pipelines.plan import (
    AfterCount,
    AfterWatermark,
    Aggregate,
    Column,
    CountPolicy,
    Fixed,
    Output,
    Plan,
    Repeatedly,
    Sessions,
    Sliding,
    SlidingOrder,
    Source,
    Stage,
    Topic,
    Tumbling,
    aggregate_fields,
)
from penstock.pipelines.reference import Batch, Evaluator, Record
from penstock.pipelines.reference.numbers import canonical
from penstock.pipelines.reference.records import Element
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

TYPES = {"key": pa.string(), "at": pa.int64(), **{field.name: field.type for field in FIELDS}}
SOURCE = Source("records", Topic("records"), tuple(Column(name, "ANY") for name in TYPES), "at")
OF_THE_REFERENCES_TYPE = [of for of in EVERY if "price" not in aggregate_fields(of)]
"""A mean of decimals is a decimal to the reference, and a floating number to the engine."""

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
    outputs = tuple(Output(f"out_{number}", of) for number, of in enumerate(chosen))
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
def histories(draw: st.DrawFn, stage: Stage) -> list[Batch]:
    """Batches with rising watermarks, and an end."""
    read = {name for output in stage.aggregates for name in aggregate_fields(output.of)}
    batches: list[Batch] = []
    watermark, offsets = 0, [0, 0]
    for number in range(draw(st.integers(1, 4))):
        watermark += draw(st.integers(0, 8))
        records = []
        for content in draw(st.lists(fields(*sorted(read)), max_size=5)):
            partition = draw(st.integers(0, 1))
            named = {"key": draw(st.sampled_from(["a", "b"])), "at": draw(st.integers(0, 30))}
            records.append(Record("records", partition, offsets[partition], content | named))
            offsets[partition] += 1
        batches.append(Batch(number, number, tuple(records), watermark=watermark))
    return [*batches, Batch(len(batches), len(batches), ends=True)]


def elements_of(records: Sequence[Record]) -> pa.Table:
    """Records as elements, with their keys."""
    table = table_of([Element((), r.fields["at"], r.address, r.fields) for r in records])
    keys = pa.array([record.fields["key"] for record in records], pa.string())
    return table.append_column("key", keys)


def partials(stage: ReadyStage, records: Sequence[Record]) -> pa.Table:
    """Partials by partition, key and window, each merged from the elements that it is of."""
    if stage.in_order:
        return elements_of(records[::-1])
    window = stage.plan.window
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position, record in enumerate(records):
        for start, end in places(window, record.fields["at"], 0):
            groups[record.fields["key"], int(start), int(end), record.partition].append(position)
    rows = fresh([part.slot for part in stage.parts], len(groups))
    chosen = [position for members in groups.values() for position in members]
    of = [number for number, members in enumerate(groups.values()) for _ in members]
    every = elements_of([records[position] for position in chosen])
    merge_into(stage.parts, rows, np.array(of, np.int64), lifted(stage.parts, every))
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
    made = rows.table(pa.schema([pa.field(part.name, part.type) for part in stage.parts]))
    columns = [
        made.column(field.name)
        if field.name in made.column_names
        else pa.array(known[field.name], field.type)
        for field in stage.partial_columns
    ]
    return pa.table(columns, schema=stage.partial_columns)


def engine(stage: Stage, batches: Sequence[Batch], folder: Path) -> list[list[tuple[Any, ...]]]:
    ready = ready_stage(stage, TYPES)
    tree = trees.empty(ready.state_columns)
    clock, watermark = BEFORE_ALL, BEFORE_ALL
    width = len(ready.key) + len(ready.accumulators) + 11
    answers = []
    for batch in batches:
        after = NEVER if batch.ends else instant(batch.watermark or 0)
        moment = Moment(batch.id, clock, batch.clock, watermark, after)
        outcome = fold(ready, tree, partials(ready, batch.records), moment)
        tree = tree.with_run(outcome.changed, folder / f"run-{batch.id}.arrow").compacted(folder)
        panes = [row for row in outcome.panes.to_pylist() if row["kind"] != "replaced"]
        rows = [canonical(tuple(row.values()))[:width] for row in panes]
        answers.append(sorted(rows, key=repr))
        clock, watermark = batch.clock, after
    return answers


def reference(stage: Stage, batches: Sequence[Batch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    return [sorted((said(pane) for pane in evaluator.run(batch).panes), key=repr) for batch in batches]


@settings(max_examples=examples(35), deadline=None, suppress_health_check=list(HealthCheck))
@given(stage=stages(), data=st.data())
def test_windows_of_every_aggregate_say_what_the_reference_says(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, data: st.DataObject
) -> None:
    batches = data.draw(histories(stage))
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
