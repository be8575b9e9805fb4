"""Order windows in columns say what the reference evaluator says, record by record, for every policy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipelines.fold.strategies import aggregates, histories
from tests.pipelines.fold.test_windows_against_reference import FIELDS, SOURCE, instant, said

from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage, ready_stage
from penstock.pipelines.plan import Collect, Compare, Output, Plan, Stage
from penstock.pipelines.plan.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling
from penstock.pipelines.reference import Batch, Evaluator
from penstock.pipelines.reference.conditions import meets
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

counts = st.builds(CountPolicy, st.integers(1, 4))
deltas = st.builds(DeltaPolicy, st.just("value"), st.sampled_from([0.0, 1.0, 2.5]))
times = st.builds(TimePolicy, st.integers(1, 9))
MATCHES = Compare("value", ">", 3)
windows = st.one_of(
    st.builds(Tumbling, st.one_of(counts, deltas, times, st.just(PunctuationPolicy(MATCHES)))),
    st.builds(SlidingOrder, st.one_of(counts, deltas, times), st.one_of(counts, deltas, times)),
)
stages = st.builds(
    lambda window, key: Stage(
        "stage", ("records",), window, (*aggregates, Output("words", Collect("word", "arrival"))), key=key
    ),
    windows,
    st.sampled_from([("key",), (), ("key", "word")]),
)


def reference(stage: Stage, batches: Sequence[Batch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    outcomes = [evaluator.run(batch) for batch in batches]
    return [sorted(((*said(pane), pane.number) for pane in o.panes), key=repr) for o in outcomes]


def sent(stage: ReadyStage, batch: Batch) -> pa.Table:
    """The records as Spark would send them."""
    rows = [
        {
            **record.fields,
            "_topic": record.source,
            "_partition": record.partition,
            "_offset": record.offset,
            "_time": record.fields["at"],
            "_matched": meets(record.fields, MATCHES),
        }
        for record in reversed(batch.records)
    ]
    address = [pa.field("_topic", pa.string()), pa.field("_partition", pa.int32())]
    return pa.Table.from_pylist(rows, schema=pa.schema([*address, *stage.partial_columns]))


def engine(stage: Stage, batches: Sequence[Batch], folder: Path) -> list[list[tuple[Any, ...]]]:
    ready = ready_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.empty(ready.state_columns)
    clock, watermark = BEFORE_ALL, BEFORE_ALL
    answers = []
    for batch in batches:
        after = NEVER if batch.ends else instant(batch.watermark or 0)
        moment = Moment(batch.id, clock, batch.clock, watermark, after)
        outcome = fold(ready, tree, sent(ready, batch), moment)
        tree = tree.with_run(outcome.changed, folder / f"run-{batch.id}.arrow").compacted(folder)
        panes = [tuple(pane.values()) for pane in outcome.panes.to_pylist()]
        answers.append(sorted((tuple(map(frozen, pane)) for pane in panes), key=repr))
        clock, watermark = batch.clock, after
    return answers


def frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(stage=stages, batches=histories())
def test_order_windows_and_the_reference_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, batches: list[Batch]
) -> None:
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
