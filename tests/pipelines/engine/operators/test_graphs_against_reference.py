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
    run_engine,
    run_reference,
    split_inputs,
)
from tests.pipelines.engine.operators.stage_strategies import histories, triggers, windows
from tests.pipelines.engine.operators.test_chains_against_reference import (
    end_without_watermarks,
    is_valid_plan,
    repeating_triggers,
    unpunctuated_triggers,
)

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

TOPICS = ("clicks", "views")
VALUE_ABOVE_ONE = Comparison("value", ">", 1)


def split_word(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each letter of the word, which replaces the word."""
    return [{**row, "word": letter} for letter in row["word"] or ""]


SPLIT_WORD = RowFunctionStep(
    function_ref(split_word),
    (Column("key", "STRING"), Column("value", "BIGINT"), Column("word", "STRING")),
    many=True,
)
SWAP_KEY_AND_WORD = SelectStep((("word", "key"), ("key", "word"), ("value", "value")))
input_step_choices = st.sampled_from(
    [
        (),
        (InputSteps("clicks", (FilterStep(VALUE_ABOVE_ONE),)),),
        (InputSteps("views", (SPLIT_WORD, FilterStep(IsNotTrue(IsNull("word"))))),),
        (
            InputSteps("clicks", (SWAP_KEY_AND_WORD,)),
            InputSteps("views", (FilterStep(VALUE_ABOVE_ONE), SWAP_KEY_AND_WORD, SWAP_KEY_AND_WORD)),
        ),
    ]
)


def make_join(kind: str, left: str, right: str) -> tuple[Join, tuple[AggregateOutput, ...]]:
    """A join of values and words, with its upstream stages."""
    columns = (JoinColumn("value", left, "value"), JoinColumn("word", left, "word"))
    if kind not in ("semi", "anti"):
        columns = (*columns, JoinColumn("other", right, "value"))
    join = Join(kind, left, right, columns)  # type: ignore[arg-type]
    sides = (("left", left), ("right", right))
    return join, tuple(
        AggregateOutput(side, JoinMembers(input_name, join.fields_from(input_name)))
        for side, input_name in sides
    )


def make_stage(
    draw: st.DrawFn, name: str, inputs: tuple[str, ...], window: Any, aggregates: Any, **options: Any
) -> Stage:
    """A stage with any trigger."""
    return Stage(
        name, inputs, window, aggregates,
        on_time_pane=draw(st.sampled_from(["always", "when_changed"])),
        final_pane=draw(st.sampled_from(["never", "when_changed", "always"])),
        sinks=(PaneLog(name),),
        **options,
    )  # fmt: skip


@st.composite
def joins(draw: st.DrawFn) -> Plan:
    """A join of two inputs, and perhaps an aggregation of the joined rows."""
    join, aggregates = make_join(draw(st.sampled_from(JOIN_KINDS)), *draw(st.permutations(TOPICS)))
    accumulation = draw(st.sampled_from(["discarding", "accumulating", "retracting"]))
    lateness = sorted(draw(st.integers(0, 9)) for _ in range(2))
    join_stage = make_stage(
        draw, "joined", (join.left, join.right), draw(windows), aggregates, key=("key",), join=join,
        trigger=draw(triggers), may_finish=True, accumulation=accumulation, lateness=lateness[0],
        input_steps=draw(input_step_choices),
    )  # fmt: skip
    aggregates = (
        AggregateOutput("rows", Count()),
        AggregateOutput("total", Sum("value")),
        AggregateOutput("best", TopN("word", 2, "value")),
    )
    sum_stage = make_stage(
        draw, "then", ("joined",), SameWindows(), aggregates, trigger=draw(unpunctuated_triggers),
        key=draw(st.sampled_from([(), ("key",)])),
        accumulation="retracting", lateness=lateness[1],
    )  # fmt: skip
    return Plan("joined", (CLICKS, VIEWS), (join_stage, sum_stage) if draw(st.booleans()) else (join_stage,))


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    """Up to five stages over two inputs: some in parallel over parts of one topic, combined again downstream."""
    lateness = draw(st.integers(0, 5))
    aggregates = (
        AggregateOutput("n", Count()),
        AggregateOutput("value", Sum("value")),
        AggregateOutput("word", Max("word")),
    )
    options = {
        "key": ("key",),
        "lateness": lateness,
        "accumulation": "retracting",
        "trigger": draw(repeating_triggers),
    }
    window = draw(windows)
    above_stage = make_stage(
        draw, "above", ("clicks",), window, aggregates, steps=(FilterStep(VALUE_ABOVE_ONE),), **options
    )
    other_stage = make_stage(
        draw,
        "rest",
        ("clicks",),
        window,
        aggregates,
        steps=(FilterStep(IsNotTrue(VALUE_ABOVE_ONE)),),
        **options,
    )
    one_input_aggregates = (
        AggregateOutput("clicks", OfInput("clicks", Count())),
        AggregateOutput("value", OfInput("views", Sum("value"))),
        AggregateOutput("word", OfInput("clicks", TopN("word", 1, "value"))),
    )
    both_stage = make_stage(
        draw,
        "every",
        TOPICS,
        draw(windows),
        one_input_aggregates,
        input_steps=draw(input_step_choices),
        **options,
    )
    join, join_aggregates = make_join(draw(st.sampled_from(JOIN_KINDS)), "above", "rest")
    downstream_options = {**options, "trigger": draw(unpunctuated_triggers)}
    join_stage = make_stage(
        draw, "met", ("above", "rest"), SameWindows(), join_aggregates, join=join, **downstream_options
    )
    window_of_sums = (
        Global() if isinstance(window, Global) else draw(st.sampled_from([SameWindows(), Global()]))
    )
    sum_aggregates = (
        AggregateOutput("values", Sum("value")),
        AggregateOutput("n", OfInput("above", Count())),
        AggregateOutput("words", Collect("word")),
        AggregateOutput("few", TopN("word", 2, "n", largest=False)),
    )
    sum_stage = make_stage(
        draw, "sums", ("above", "rest"), window_of_sums, sum_aggregates, **{**downstream_options, "key": ()}
    )
    stages = draw(
        st.sampled_from(
            [
                (above_stage, other_stage),
                (above_stage, other_stage, join_stage),
                (above_stage, both_stage),
                (above_stage, other_stage, both_stage, join_stage, sum_stage),
            ]
        )
    )
    return Plan("graph", (CLICKS, VIEWS), stages)


@settings(max_examples=scale_examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=st.one_of(joins(), graphs()).filter(is_valid_plan), batches=histories())
def test_every_stage_of_a_graph_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    topic_batches = split_inputs(batches)
    assert run_engine(plan, topic_batches, tmp_path_factory.mktemp("state")) == run_reference(
        plan, topic_batches
    )


def apply_changes(batches: list[dict[str, Rows]], stage: Stage, columns: int) -> Counter[Any]:
    """What remains of a stage's panes, with counts. An on-time or final pane shows all rows of its window."""
    remaining_rows = Counter[Any]()
    for batch in batches:
        retracted, inserted = (
            [row for row in batch[stage.name] if row[columns + 4] == kind] for kind in ("retract", "insert")
        )
        assert not Counter(row[:columns] for row in retracted) - remaining_rows
        remaining_rows -= Counter(row[:columns] for row in retracted)
        complete_windows = {
            find_window(row, stage, columns)
            for row in inserted
            if row[columns + 1] == "on_time" or row[columns + 3]
        }
        for row in [row for row in remaining_rows if find_window(row, stage, columns) in complete_windows]:
            del remaining_rows[row]
        remaining_rows += Counter(row[:columns] for row in inserted)
    return remaining_rows


def find_window(row: tuple[Any, ...], stage: Stage, columns: int) -> tuple[Any, ...]:
    return row[: len(stage.key)] + row[columns - 2 : columns]


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=st.one_of(joins(), graphs()).filter(is_valid_plan), batches=histories())
def test_all_changes_of_a_graph_sum_to_a_bounded_run(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    uses_processing_time = any(stage.window.uses_processing_time for stage in plan.source_stages)
    may_finish = any(stage.may_finish for stage in plan.stages)
    if any(stage.accumulation != "retracting" for stage in plan.stages) or uses_processing_time or may_finish:
        return
    plan = replace(plan, stages=tuple(replace(stage, final_pane="when_changed") for stage in plan.stages))
    topic_batches = split_inputs(batches)
    live_rows = run_engine(plan, end_without_watermarks(topic_batches), tmp_path_factory.mktemp("state"))
    records = tuple(record for batch in topic_batches for record in batch.records)
    (bounded_rows,) = run_reference(plan, [InputBatch(0, 0, records, is_last=True)])
    for stage in plan.stages:
        columns = len(stage.key) + len(stage.join.columns if stage.join else stage.aggregates) + 2
        expected = Counter(row[:columns] for row in bounded_rows[stage.name] if row[columns + 4] == "insert")
        assert apply_changes(live_rows, stage, columns) == expected


def test_ties_between_panes_are_ordered_by_time_and_then_by_values(
    tmp_path: Path,
) -> None:
    aggregates = (AggregateOutput("n", Count()), AggregateOutput("word", Max("word")))
    options = {"key": ("key",), "accumulation": "retracting"}
    upstream_stages = [
        Stage(name, (name,), Fixed(10), aggregates, **options, sinks=(PaneLog(name),))
        for name in ("clicks", "views")
    ]
    upstream_stages = [replace(stage, name=f"of_{stage.name}") for stage in upstream_stages]
    list_aggregates = (
        AggregateOutput("words", Collect("word")),
        AggregateOutput("few", TopN("word", 3, "n")),
    )
    joint_stage = Stage(
        "both", ("of_clicks", "of_views"), Global(), list_aggregates, accumulation="retracting",
        sinks=(PaneLog("both"),),
    )  # fmt: skip
    plan = validate_plan(Plan("graph", (CLICKS, VIEWS), (*upstream_stages, joint_stage)))
    record_values = [("views", 1, "a"), ("clicks", 2, "c"), ("clicks", 11, "b"), ("views", 12, "d")]
    records = tuple(
        InputRecord(source, 0, at, {"key": "k", "at": at, "value": 0, "word": word})
        for source, at, word in record_values
    )
    batches = [InputBatch(0, 0, records, is_last=True)]
    rows_by_batch = run_engine(plan, batches, tmp_path)
    assert rows_by_batch == run_reference(plan, batches)
    assert rows_by_batch[0]["both"][0][:2] == (("a", "c", "b", "d"), ("a", "c", "b"))
