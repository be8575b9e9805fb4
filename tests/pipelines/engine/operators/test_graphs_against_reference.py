"""Joins, unions, branches and several record stages equal the reference in each batch."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import (
    CLICKS,
    VIEWS,
    Rows,
    engine,
    reference,
    split_inputs,
)
from tests.pipelines.engine.operators.stage_strategies import histories, triggers, windows
from tests.pipelines.engine.operators.test_chains_against_reference import lasting, on_time, over_panes, sound

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.definition.predicates import Comparison, IsNotTrue, IsNull
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.plan.joins import JOIN_KINDS, Join, JoinColumn
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import FilterStep, InputSteps, RowFunctionStep, SelectStep
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.same_windows import SameWindows

BOTH = ("clicks", "views")
ABOVE = Comparison("value", ">", 1)


def twice(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each letter of the word, with the word itself beside it."""
    return [{**row, "word": letter} for letter in row["word"] or ""]


TWICE = RowFunctionStep(
    function_ref(twice),
    (Column("key", "STRING"), Column("value", "BIGINT"), Column("word", "STRING")),
    many=True,
)
SWAPPED = SelectStep((("word", "key"), ("key", "word"), ("value", "value")))
own_steps = st.sampled_from(
    [
        (),
        (InputSteps("clicks", (FilterStep(ABOVE),)),),
        (InputSteps("views", (TWICE, FilterStep(IsNotTrue(IsNull("word"))))),),
        (InputSteps("clicks", (SWAPPED,)), InputSteps("views", (FilterStep(ABOVE), SWAPPED, SWAPPED))),
    ]
)


def joining(kind: str, left: str, right: str) -> tuple[Join, tuple[AggregateOutput, ...]]:
    """A join of values and words, with its upstream stages."""
    taken = (JoinColumn("value", left, "value"), JoinColumn("word", left, "word"))
    if kind not in ("semi", "anti"):
        taken = (*taken, JoinColumn("other", right, "value"))
    join = Join(kind, left, right, taken)  # type: ignore[arg-type]
    sides = (("left", left), ("right", right))
    return join, tuple(
        AggregateOutput(side, JoinMembers(name, join.fields_from(name))) for side, name in sides
    )


def stage(draw: st.DrawFn, name: str, inputs: tuple[str, ...], window: Any, of: Any, **others: Any) -> Stage:
    """A stage with any trigger."""
    return Stage(
        name, inputs, window, of,
        on_time_pane=draw(st.sampled_from(["always", "when_changed"])),
        final_pane=draw(st.sampled_from(["never", "when_changed", "always"])),
        sinks=(PaneLog(name),),
        **others,
    )  # fmt: skip


@st.composite
def joins(draw: st.DrawFn) -> Plan:
    """A join of two inputs, and perhaps an aggregation of the joined rows."""
    join, of = joining(draw(st.sampled_from(JOIN_KINDS)), *draw(st.permutations(BOTH)))
    mode = draw(st.sampled_from(["discarding", "accumulating", "retracting"]))
    lateness = sorted(draw(st.integers(0, 9)) for _ in range(2))
    first = stage(
        draw, "joined", (join.left, join.right), draw(windows), of, key=("key",), join=join,
        trigger=draw(triggers), may_finish=True, accumulation=mode, lateness=lateness[0],
        input_steps=draw(own_steps),
    )  # fmt: skip
    summed = (
        AggregateOutput("rows", Count()),
        AggregateOutput("total", Sum("value")),
        AggregateOutput("best", TopN("word", 2, "value")),
    )
    then = stage(
        draw, "then", ("joined",), SameWindows(), summed, trigger=draw(over_panes),
        key=draw(st.sampled_from([(), ("key",)])),
        accumulation="retracting", lateness=lateness[1],
    )  # fmt: skip
    return Plan("joined", (CLICKS, VIEWS), (first, then) if draw(st.booleans()) else (first,))


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    """Up to five stages over two inputs: some in parallel over parts of one topic, combined again downstream."""
    lateness = draw(st.integers(0, 5))
    counted = (
        AggregateOutput("n", Count()),
        AggregateOutput("value", Sum("value")),
        AggregateOutput("word", Max("word")),
    )
    alike = {"key": ("key",), "lateness": lateness, "accumulation": "retracting", "trigger": draw(lasting)}
    window = draw(windows)
    above = stage(draw, "above", ("clicks",), window, counted, steps=(FilterStep(ABOVE),), **alike)
    rest = stage(draw, "rest", ("clicks",), window, counted, steps=(FilterStep(IsNotTrue(ABOVE)),), **alike)
    of_one = (
        AggregateOutput("clicks", OfInput("clicks", Count())),
        AggregateOutput("value", OfInput("views", Sum("value"))),
        AggregateOutput("word", OfInput("clicks", TopN("word", 1, "value"))),
    )
    every = stage(draw, "every", BOTH, draw(windows), of_one, input_steps=draw(own_steps), **alike)
    join, of = joining(draw(st.sampled_from(JOIN_KINDS)), "above", "rest")
    later = {**alike, "trigger": draw(over_panes)}
    met = stage(draw, "met", ("above", "rest"), SameWindows(), of, join=join, **later)
    wide = Global() if isinstance(window, Global) else draw(st.sampled_from([SameWindows(), Global()]))
    sums = (
        AggregateOutput("values", Sum("value")),
        AggregateOutput("n", OfInput("above", Count())),
        AggregateOutput("words", Collect("word")),
        AggregateOutput("few", TopN("word", 2, "n", largest=False)),
    )
    sums = stage(draw, "sums", ("above", "rest"), wide, sums, **{**later, "key": ()})
    chosen = draw(
        st.sampled_from([(above, rest), (above, rest, met), (above, every), (above, rest, every, met, sums)])
    )
    return Plan("graph", (CLICKS, VIEWS), chosen)


@settings(max_examples=scale_examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=st.one_of(joins(), graphs()).filter(sound), batches=histories())
def test_every_stage_of_a_graph_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    two = split_inputs(batches)
    assert engine(plan, two, tmp_path_factory.mktemp("state")) == reference(plan, two)


def standing(batches: list[dict[str, Rows]], stage: Stage, columns: int) -> Counter[Any]:
    """What remains of a stage's panes, with counts. An on-time or final pane shows all rows of its window."""
    left = Counter[Any]()
    for batch in batches:
        retracted, inserted = (
            [row for row in batch[stage.name] if row[columns + 4] == kind] for kind in ("retract", "insert")
        )
        assert not Counter(row[:columns] for row in retracted) - left
        left -= Counter(row[:columns] for row in retracted)
        whole = {
            window_of(row, stage, columns)
            for row in inserted
            if row[columns + 1] == "on_time" or row[columns + 3]
        }
        for row in [row for row in left if window_of(row, stage, columns) in whole]:
            del left[row]
        left += Counter(row[:columns] for row in inserted)
    return left


def window_of(row: tuple[Any, ...], stage: Stage, columns: int) -> tuple[Any, ...]:
    return row[: len(stage.key)] + row[columns - 2 : columns]


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=st.one_of(joins(), graphs()).filter(sound), batches=histories())
def test_all_changes_of_a_graph_sum_to_a_bounded_run(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    clocked = any(each.window.uses_processing_time for each in plan.source_stages)
    finishes = any(each.may_finish for each in plan.stages)
    if any(each.accumulation != "retracting" for each in plan.stages) or clocked or finishes:
        return
    plan = replace(plan, stages=tuple(replace(each, final_pane="when_changed") for each in plan.stages))
    two = split_inputs(batches)
    ran = engine(plan, on_time(two), tmp_path_factory.mktemp("state"))
    records = tuple(record for batch in two for record in batch.records)
    (whole,) = reference(plan, [InputBatch(0, 0, records, is_last=True)])
    for each in plan.stages:
        columns = len(each.key) + len(each.join.columns if each.join else each.aggregates) + 2
        expected = Counter(row[:columns] for row in whole[each.name] if row[columns + 4] == "insert")
        assert standing(ran, each, columns) == expected


def test_ties_between_panes_are_ordered_by_time_and_then_by_values(
    tmp_path: Path,
) -> None:
    counted = (AggregateOutput("n", Count()), AggregateOutput("word", Max("word")))
    alike = {"key": ("key",), "accumulation": "retracting"}
    sides = [
        Stage(name, (name,), Fixed(10), counted, **alike, sinks=(PaneLog(name),))
        for name in ("clicks", "views")
    ]
    sides = [replace(each, name=f"of_{each.name}") for each in sides]
    of = (AggregateOutput("words", Collect("word")), AggregateOutput("few", TopN("word", 3, "n")))
    both = Stage(
        "both", ("of_clicks", "of_views"), Global(), of, accumulation="retracting", sinks=(PaneLog("both"),)
    )  # fmt: skip
    plan = validate_plan(Plan("graph", (CLICKS, VIEWS), (*sides, both)))
    came = [("views", 1, "a"), ("clicks", 2, "c"), ("clicks", 11, "b"), ("views", 12, "d")]
    records = tuple(
        InputRecord(source, 0, at, {"key": "k", "at": at, "value": 0, "word": word})
        for source, at, word in came
    )
    batches = [InputBatch(0, 0, records, is_last=True)]
    told = engine(plan, batches, tmp_path)
    assert told == reference(plan, batches)
    assert told[0]["both"][0][:2] == (("a", "c", "b", "d"), ("a", "c", "b"))
