"""Order windows in columns say what the reference evaluator says, record by record, for every policy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.pipelines.fold.partials import elements
from tests.pipelines.fold.strategies import aggregates, histories
from tests.pipelines.fold.test_windows_against_reference import FIELDS, SOURCE, instant, said

from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ready_stage
from penstock.pipelines.plan import Collect, Compare, Output, Plan, Stage
from penstock.pipelines.plan.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling
from penstock.pipelines.reference import Batch, Evaluator
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

counts = st.builds(CountPolicy, st.integers(1, 4))
deltas = st.builds(DeltaPolicy, st.just("value"), st.sampled_from([0.0, 1.0, 2.5]))
times = st.builds(TimePolicy, st.integers(1, 9))
windows = st.one_of(
    st.builds(
        Tumbling, st.one_of(counts, deltas, times, st.just(PunctuationPolicy(Compare("value", ">", 3))))
    ),
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


def engine(stage: Stage, batches: Sequence[Batch], folder: Path) -> list[list[tuple[Any, ...]]]:
    ready = ready_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.empty(ready.state_columns)
    clock, watermark, newest = BEFORE_ALL, BEFORE_ALL, BEFORE_ALL
    answers = []
    for batch in batches:
        after = NEVER if batch.ends else instant(batch.watermark or 0)
        newest = max([newest, *(record.fields["at"] for record in batch.records)])
        moment = Moment(batch.id, clock, batch.clock, watermark, after, newest=newest)
        outcome = fold(ready, tree, elements(ready, batch.records, "at"), moment)
        tree = tree.with_run(outcome.changed, folder / f"run-{batch.id}.arrow").compacted(folder)
        panes = [tuple(pane.values()) for pane in outcome.panes.to_pylist()]
        answers.append(sorted((tuple(map(frozen, pane)) for pane in panes), key=repr))
        clock, watermark = batch.clock, after
    return answers


def frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(stage=stages, batches=histories())
def test_order_windows_and_the_reference_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, batches: list[Batch]
) -> None:
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
