"""Upstream stages may have columns of one name and different types, unless a stage uses both as one."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.engine.operators.graph_evaluation import (
    CLICKS,
    compile_plan_graph,
    run_engine,
    run_reference,
)

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import InputSteps, SelectStep
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.same_windows import SameWindows


def make_upstream_stage(name: str, word: Aggregate) -> Stage:
    """Clicks by key, in windows of ten."""
    aggregates = (AggregateOutput("n", Count()), AggregateOutput("word", word))
    options = {"accumulation": "retracting", "sinks": (PaneLog(name),)}
    return Stage(name, ("clicks",), Fixed(10), aggregates, key=("key",), **options)  # type: ignore[arg-type]


SCALAR_STAGE, LIST_STAGE = (
    make_upstream_stage("one", Max("word")),
    make_upstream_stage("many", TopN("word", 2)),
)
"""`word` is a string in the first, and a list in the second."""


def make_plan(downstream_stage: Stage) -> Plan:
    """Both of them, and a stage that reads both."""
    downstream_stage = replace(
        downstream_stage, accumulation="retracting", sinks=(PaneLog(downstream_stage.name),)
    )
    return validate_plan(Plan("both", (CLICKS,), (SCALAR_STAGE, LIST_STAGE, downstream_stage)))


def make_join(*columns: JoinColumn) -> Stage:
    """A join of both."""
    join = Join("inner", "one", "many", columns)
    sides = (("left", "one"), ("right", "many"))
    aggregates = tuple(
        AggregateOutput(side, JoinMembers(name, join.fields_from(name))) for side, name in sides
    )
    return Stage("joined", ("one", "many"), SameWindows(), aggregates, key=("key",), join=join)


SUM_STAGE = Stage(
    "summed",
    ("one", "many"),
    SameWindows(),
    (AggregateOutput("n", Sum("n")), AggregateOutput("words", OfInput("one", Max("word")))),
    key=("key",),
)
BATCHES = [
    InputBatch(0, 0, tuple(
        InputRecord("clicks", 0, at, {"key": "a", "at": at, "value": at, "word": word})
        for at, word in enumerate("xyx")
    ), watermark=10),
]  # fmt: skip


@pytest.mark.parametrize(
    "downstream_stage",
    [
        make_join(JoinColumn("n", "many", "n"), JoinColumn("m", "one", "n")),
        make_join(JoinColumn("n", "one", "n"), JoinColumn("word", "one", "word")),
        SUM_STAGE,
    ],
)
def test_a_column_used_from_one_stage_may_have_any_type_in_the_other(
    tmp_path: Path, downstream_stage: Stage
) -> None:
    plan = make_plan(downstream_stage)
    rows_by_batch = run_engine(plan, BATCHES, tmp_path)
    assert rows_by_batch == run_reference(plan, BATCHES)
    assert all(rows_by_batch[0].values())


def test_a_column_used_from_both_must_be_renamed_first(tmp_path: Path) -> None:
    conflicting = make_join(JoinColumn("word", "one", "word"), JoinColumn("best", "many", "word"))
    message = "then.word: it is list<.*> in many and string in one. .*as in "
    message += "many.then().select(other_word='word', ...)"
    with pytest.raises(DefinitionError, match=message.replace("(", "[(]").replace(")", "[)]")):
        compile_plan_graph(make_plan(conflicting))
    renamed = make_join(JoinColumn("best", "many", "other_word"), JoinColumn("word", "one", "word"))
    select = InputSteps("many", (SelectStep((("key", "key"), ("n", "n"), ("other_word", "word"))),))
    plan = make_plan(replace(renamed, input_steps=(select,)))
    assert run_engine(plan, BATCHES, tmp_path) == run_reference(plan, BATCHES)
