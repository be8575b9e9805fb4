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
from tests.pipelines.engine.operators.duckdb_partials import elements, partials
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

Values = Counter[tuple[Any, ...]]

of_time = st.one_of(
    st.builds(Fixed, st.integers(1, 12)),
    st.builds(Sliding, st.integers(1, 9), st.integers(1, 9)),
    st.builds(Sessions, st.integers(1, 9)),
)
in_order = st.one_of(
    st.builds(Tumbling, st.builds(CountPolicy, st.integers(1, 4))),
    st.builds(Tumbling, st.just(DeltaPolicy("value", 2.0))),
    st.builds(
        SlidingOrder, st.builds(CountPolicy, st.integers(1, 4)), st.builds(CountPolicy, st.integers(1, 3))
    ),
)
STAGE = Stage("stage", ("records",), Fixed(1), stage_strategies.aggregates, key=("key",))


@st.composite
def cut_twice(draw: st.DrawFn) -> tuple[list[list[InputRecord]], list[list[InputRecord]]]:
    """The same records of one partition, split into batches in two ways."""
    contents = draw(st.lists(stage_strategies.fields, max_size=30))
    records = [InputRecord("records", 0, offset, content) for offset, content in enumerate(contents)]

    def cut() -> list[list[InputRecord]]:
        edges = sorted(draw(st.lists(st.integers(0, len(records)), max_size=6)))
        return [records[a:b] for a, b in zip([0, *edges], [*edges, len(records)], strict=True)]

    return cut(), cut()


def panes(stage: Stage, batches: Sequence[Sequence[InputRecord]], folder: Path) -> list[dict[str, Any]]:
    """All panes of a run with an end."""
    ready = compile_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.create_empty_tree(ready.state_schema)
    found: list[dict[str, Any]] = []
    for number, records in enumerate([*batches, []]):
        ends = number == len(batches)
        clock_before = number - 1 if number else MIN_TIMESTAMP_MS
        moment = BatchTime(
            number, clock_before, number, MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS if ends else MIN_TIMESTAMP_MS
        )
        sent = (
            elements(ready, records, "at")
            if ready.is_ordered
            else partials(ready, records, FIELDS, "at", number)
        )
        outcome = process_batch(ready, tree, sent, moment)
        tree = tree.with_run(outcome.changed_state, folder / f"run-{number}.arrow")
        found += outcome.panes.to_pylist()
    return found


def values(stage: Stage, rows: Sequence[dict[str, Any]]) -> Values:
    """The final rows: inserts minus retractions, without the columns that describe how they came about."""
    told = ["window_start", "window_end", *stage.key, *(output.name for output in stage.aggregates)]
    standing: Values = Counter()
    for row in rows:
        standing[tuple(row[name] for name in told)] += 1 if row["kind"] == "insert" else -1
    return +standing


settled = settings(max_examples=scale_examples(35), deadline=None, suppress_health_check=list(HealthCheck))


@settled
@given(window=of_time, cuts=cut_twice())
def test_inserts_minus_retractions_equal_a_bounded_run(
    tmp_path_factory: pytest.TempPathFactory,
    window: Any,
    cuts: tuple[list[list[InputRecord]], list[list[InputRecord]]],
) -> None:
    stage = replace(STAGE, window=window, trigger=repeatedly(after_count(1)), accumulation="retracting")
    bounded = [[record for batch in cuts[0] for record in batch]]
    found = [values(stage, panes(stage, cut, tmp_path_factory.mktemp("state"))) for cut in (*cuts, bounded)]
    assert found[0] == found[1] == found[2]


@settled
@given(window=in_order, cuts=cut_twice())
def test_order_windows_do_not_depend_on_batches(
    tmp_path_factory: pytest.TempPathFactory,
    window: Any,
    cuts: tuple[list[list[InputRecord]], list[list[InputRecord]]],
) -> None:
    stage = replace(STAGE, window=window)
    one, other = (panes(stage, cut, tmp_path_factory.mktemp("state")) for cut in cuts)
    assert values(stage, one) == values(stage, other)
