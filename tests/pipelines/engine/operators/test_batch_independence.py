"""Final values do not depend on how records are split into batches."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators import stage_strategies
from tests.pipelines.engine.operators.duckdb_partials import compute_partials, list_elements
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS

from penstock.conformance.reference import InputRecord
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.stages import Stage
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.tumbling import Tumbling
from penstock.stream import after_count, repeatedly

RowCounts = Counter[tuple[Any, ...]]

time_windows = st.one_of(
    st.builds(Fixed, st.integers(1, 12)),
    st.builds(Sliding, st.integers(1, 9), st.integers(1, 9)),
    st.builds(Sessions, st.integers(1, 9)),
)
order_windows = st.one_of(
    st.builds(Tumbling, st.builds(CountPolicy, st.integers(1, 4))),
    st.builds(Tumbling, st.just(DeltaPolicy("value", 2.0))),
    st.builds(
        SlidingOrder, st.builds(CountPolicy, st.integers(1, 4)), st.builds(CountPolicy, st.integers(1, 3))
    ),
)
STAGE = Stage("stage", ("records",), Fixed(1), stage_strategies.aggregates, key=("key",))


@st.composite
def split_batches(draw: st.DrawFn) -> tuple[list[list[InputRecord]], list[list[InputRecord]]]:
    """The same records of one partition, split into batches in two ways."""
    contents = draw(st.lists(stage_strategies.fields, max_size=30))
    records = [InputRecord("records", 0, offset, content) for offset, content in enumerate(contents)]

    def split() -> list[list[InputRecord]]:
        edges = sorted(draw(st.lists(st.integers(0, len(records)), max_size=6)))
        return [records[start:end] for start, end in zip([0, *edges], [*edges, len(records)], strict=True)]

    return split(), split()


def compute_panes(
    stage: Stage, batches: Sequence[Sequence[InputRecord]], folder: Path
) -> list[dict[str, Any]]:
    """All panes of a run with an end."""
    compiled_stage = compile_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.create_empty_tree(compiled_stage.state_schema)
    panes: list[dict[str, Any]] = []
    for number, records in enumerate([*batches, []]):
        is_last = number == len(batches)
        clock_before = number - 1 if number else MIN_TIMESTAMP_MS
        batch_time = BatchTime(
            number, clock_before, number, MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS if is_last else MIN_TIMESTAMP_MS
        )
        batch_input = (
            list_elements(compiled_stage, records, "at")
            if compiled_stage.is_ordered
            else compute_partials(compiled_stage, records, FIELDS, "at", number)
        )
        outcome = process_batch(compiled_stage, tree, batch_input, batch_time)
        tree = tree.with_run(outcome.changed_state, folder / f"run-{number}.arrow")
        panes += outcome.panes.to_pylist()
    return panes


def sum_changes(stage: Stage, rows: Sequence[dict[str, Any]]) -> RowCounts:
    """The final rows: inserts minus retractions, without the columns of the pane."""
    columns = ["window_start", "window_end", *stage.key, *(output.name for output in stage.aggregates)]
    remaining_rows: RowCounts = Counter()
    for row in rows:
        remaining_rows[tuple(row[name] for name in columns)] += 1 if row["kind"] == "insert" else -1
    return +remaining_rows


property_settings = settings(
    max_examples=scale_examples(35), deadline=None, suppress_health_check=list(HealthCheck)
)


@property_settings
@given(window=time_windows, splits=split_batches())
def test_inserts_minus_retractions_equal_a_bounded_run(
    tmp_path_factory: pytest.TempPathFactory,
    window: Any,
    splits: tuple[list[list[InputRecord]], list[list[InputRecord]]],
) -> None:
    stage = replace(STAGE, window=window, trigger=repeatedly(after_count(1)), accumulation="retracting")
    bounded = [[record for batch in splits[0] for record in batch]]
    remaining_rows = [
        sum_changes(stage, compute_panes(stage, batches, tmp_path_factory.mktemp("state")))
        for batches in (*splits, bounded)
    ]
    assert remaining_rows[0] == remaining_rows[1] == remaining_rows[2]


@property_settings
@given(window=order_windows, splits=split_batches())
def test_order_windows_do_not_depend_on_batches(
    tmp_path_factory: pytest.TempPathFactory,
    window: Any,
    splits: tuple[list[list[InputRecord]], list[list[InputRecord]]],
) -> None:
    stage = replace(STAGE, window=window)
    first_panes, second_panes = (
        compute_panes(stage, batches, tmp_path_factory.mktemp("state")) for batches in splits
    )
    assert sum_changes(stage, first_panes) == sum_changes(stage, second_panes)
