"""Random graphs of up to five stages: the first over records, the others over any earlier stages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import (
    CLICKS,
    VIEWS,
    run_engine,
    run_reference,
    split_inputs,
)
from tests.pipelines.engine.operators.stage_strategies import histories, windows
from tests.pipelines.engine.operators.test_chains_against_reference import (
    is_valid_plan,
    repeating_triggers,
    unpunctuated_triggers,
)

from penstock.conformance.reference import Evaluator, InputBatch
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.aggregates.sum import Sum
from penstock.engine.definition.predicates import Comparison
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.engine.plan.correction_time import correction_time_ms
from penstock.engine.plan.joins import JOIN_KINDS, Join, JoinColumn
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.plan.steps import FilterStep
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.as_of import AsOf
from penstock.engine.windows.between import Between
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.same_windows import SameWindows
from penstock.engine.windows.sliding import Sliding

TOPICS = ("clicks", "views")
COLUMNS = ("n", "value", "word")
"""Columns that every stage emits besides its key, so that any stage can read any other one."""
spans = st.integers(0, 9)


@dataclass(frozen=True)
class RecordCount:
    """The number of records of a key."""

    n: int = 0


def number_records(call: KeyContext[RecordCount]) -> KeyUpdate[RecordCount]:
    """Number the records of a key."""
    before = (call.state or RecordCount()).n
    rows = [
        OutputRow({"n": n, "value": read.fields["value"], "word": read.fields["word"]}, read.time)
        for n, read in enumerate(call.records, start=before + 1)
    ]
    return KeyUpdate(RecordCount(before + len(rows)), rows)


RETURNS = (Column("n", "BIGINT"), Column("value", "BIGINT"), Column("word", "STRING"))


def make_stage(
    draw: st.DrawFn, name: str, inputs: tuple[str, ...], window: Any, aggregates: Any, **options: Any
) -> Stage:
    """A retracting stage."""
    return Stage(
        name, inputs, window, aggregates, accumulation="retracting", sinks=(PaneLog(name),),
        on_time_pane=draw(st.sampled_from(["always", "when_changed"])),
        final_pane=draw(st.sampled_from(["never", "when_changed", "always"])),
        **{"key": ("key",), **options},
    )  # fmt: skip


def make_join(
    draw: st.DrawFn, left: str, right: str, right_column: str, kinds: Sequence[str] = JOIN_KINDS
) -> Any:
    """Join two stages: value and word of the left one, and `right_column` of the right one if the kind has it."""
    kind = draw(st.sampled_from(kinds))
    input_of_n = left if kind in ("semi", "anti") else right
    columns = (
        JoinColumn("n", input_of_n, right_column),
        JoinColumn("value", left, "value"),
        JoinColumn("word", left, "word"),
    )
    join = Join(kind, left, right, columns)  # type: ignore[arg-type]
    sides = (("left", left), ("right", right))
    of = tuple(AggregateOutput(side, JoinMembers(name, join.fields_from(name))) for side, name in sides)
    return join, of


def make_first_stage(draw: st.DrawFn, name: str) -> Stage:
    """A stage over records."""
    lateness, kind = draw(st.integers(0, 4)), draw(st.sampled_from(["windows", "join", "near", "stateful"]))
    sides = tuple(draw(st.permutations(TOPICS)))
    steps = draw(st.sampled_from([(), (FilterStep(Comparison("value", ">", 1)),)]))
    if kind == "stateful":
        window = StatefulFunction(
            function_ref(number_records),
            state_type(RecordCount),
            RETURNS,
            draw(st.none() | st.integers(1, 20)),
        )
        return Stage(name, sides[:1], window, (), steps, ("key",), sinks=(PaneLog(name),))
    if kind == "near":
        is_interval_join = draw(st.booleans())
        end_condition = draw(st.sampled_from([None, Comparison("value", "<", 1)]))
        window = (
            Between(draw(spans), draw(spans))
            if is_interval_join
            else AsOf(draw(st.none() | st.integers(1, 9)), end_condition)
        )
        join, aggregates = make_join(
            draw, *sides, "value", JOIN_KINDS if is_interval_join else ("inner", "left", "semi", "anti")
        )
        return Stage(
            name,
            sides,
            window,
            aggregates,
            steps,
            ("key",),
            lateness=lateness,
            join=join,
            sinks=(PaneLog(name),),
        )
    options = {"trigger": draw(repeating_triggers), "lateness": lateness, "steps": steps}
    if kind == "join":
        join, aggregates = make_join(draw, *sides, "value")
        return make_stage(draw, name, sides, draw(windows), aggregates, join=join, **options)
    inputs = sides[: draw(st.integers(1, 2))]
    aggregates = (
        AggregateOutput("n", Count()),
        AggregateOutput("value", Sum("value")),
        AggregateOutput("word", Max("word")),
    )
    return make_stage(draw, name, inputs, draw(windows), aggregates, **options)


def make_later_stage(draw: st.DrawFn, name: str, earlier_stages: Sequence[Stage]) -> Stage:
    """A stage over one or two earlier ones."""
    upstream_stages = draw(
        st.lists(
            st.sampled_from(earlier_stages), min_size=1, max_size=2, unique_by=lambda upstream: upstream.name
        )
    )
    inputs = tuple(upstream.name for upstream in upstream_stages)
    has_unbound_window = not all(upstream.window.is_event_time_bound for upstream in upstream_stages)
    has_global_window = has_unbound_window or any(
        isinstance(upstream.window, Global) for upstream in upstream_stages
    )
    window_choices = [
        st.just(SameWindows()),
        st.builds(Fixed, st.integers(1, 30)),
        st.builds(Sliding, *[st.integers(1, 15)] * 2),
    ]
    window = (
        Global()
        if has_unbound_window
        else draw(
            st.one_of(st.just(Global()), *(window_choices[:1] if has_global_window else window_choices))
        )
    )
    lateness = max(map(correction_time_ms, upstream_stages)) + draw(st.sampled_from([0, 0, 3]))
    options = {"trigger": draw(unpunctuated_triggers), "lateness": lateness}
    if len(upstream_stages) == 2 and draw(st.booleans()):
        join, aggregates = make_join(draw, *inputs, "n")
        return make_stage(draw, name, inputs, window, aggregates, join=join, **options)
    aggregates = draw(
        st.sampled_from(
            [
                (
                    AggregateOutput("n", Count()),
                    AggregateOutput("value", Sum("value")),
                    AggregateOutput("word", Max("word")),
                ),
                (
                    AggregateOutput("n", Distinct("word")),
                    AggregateOutput("value", Max("n")),
                    AggregateOutput("word", Max("word")),
                ),
                (
                    AggregateOutput("n", OfInput(inputs[0], Sum("n"))),
                    AggregateOutput("value", Sum("n")),
                    AggregateOutput("word", Max("word")),
                ),
            ]
        )
    )
    return make_stage(
        draw,
        name,
        inputs,
        window,
        aggregates,
        **{**options, "key": draw(st.sampled_from([("key",), ("key",), ()]))},
    )


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    """One to three stages over records, and stages over existing ones, five at most."""
    stages = [make_first_stage(draw, f"s{number}") for number in range(draw(st.integers(1, 3)))]
    for number in range(len(stages), draw(st.integers(len(stages), 5))):
        keyed_stages = [stage for stage in stages if stage.key]
        stages.append(make_later_stage(draw, f"s{number}", keyed_stages))
    input_names = {name for stage in stages for name in stage.inputs}
    return Plan(
        "graph", tuple(source for source in (CLICKS, VIEWS) if source.name in input_names), tuple(stages)
    )


@settings(max_examples=scale_examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=graphs().filter(is_valid_plan), batches=histories())
def test_every_stage_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    topic_batches = select_read_records(plan, batches)
    assert run_engine(plan, topic_batches, tmp_path_factory.mktemp("state")) == run_reference(
        plan, topic_batches
    )


def select_read_records(plan: Plan, batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The batches of both topics, without records that the plan does not read."""
    names = {source.name for source in plan.sources}
    return [
        replace(batch, records=tuple(record for record in batch.records if record.source in names))
        for batch in split_inputs(batches)
    ]


def move_into_time(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same records in one partition of each topic, each later than the watermark before it; and an end."""
    watermark_before, offset, moved = 0, count(), []
    for batch in batches:
        records = [
            replace(
                record,
                partition=0,
                offset=next(offset),
                fields={**record.fields, "at": record.fields["at"] + watermark_before + 1},
            )
            for record in batch.records
        ]
        moved.append(replace(batch, records=tuple(records), is_last=False))
        watermark_before = int(batch.watermark or watermark_before)
    return [*moved, InputBatch(len(moved), moved[-1].clock + 1, is_last=True)]


def sum_changes(plan: Plan, batches: Sequence[InputBatch]) -> dict[str, Counter[Any]]:
    """What remains of each stage in the end, with counts: inserts minus retractions."""
    evaluator = Evaluator(plan)
    remaining_rows = {stage.name: Counter[Any]() for stage in plan.stages}
    for outcome in map(evaluator.run, batches):
        for name, panes in {plan.first_source_stage.name: outcome.panes, **outcome.stage_panes}.items():
            for pane in panes:
                change = 0 if pane.is_restatement else 1 if pane.kind == "insert" else -1
                remaining_rows[name][pane.key, pane.start, pane.end, pane.values] += change
    return {
        name: Counter({row: count_of_row for row, count_of_row in rows.items() if count_of_row})
        for name, rows in remaining_rows.items()
    }


def is_event_time_plan(plan: Plan) -> bool:
    """Whether no stage depends on the clock."""
    return is_valid_plan(plan) and not any(stage.window.uses_processing_time for stage in plan.source_stages)


@settings(max_examples=scale_examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=graphs().filter(is_event_time_plan), batches=histories())
def test_every_stage_converges_to_a_bounded_run(plan: Plan, batches: list[InputBatch]) -> None:
    stages = tuple(
        stage if stage.window.is_record_ordered else replace(stage, final_pane="when_changed")
        for stage in plan.stages
    )
    live_batches = move_into_time(select_read_records(plan, batches))
    plan = replace(plan, stages=stages)
    records = tuple(record for batch in live_batches for record in batch.records)
    assert sum_changes(plan, live_batches) == sum_changes(plan, [InputBatch(0, 0, records, is_last=True)])
