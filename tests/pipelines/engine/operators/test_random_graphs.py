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
from tests.pipelines.engine.operators.graph_evaluation import CLICKS, VIEWS, engine, reference, split_inputs
from tests.pipelines.engine.operators.stage_strategies import histories, windows
from tests.pipelines.engine.operators.test_chains_against_reference import lasting, over_panes, sound

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
"""Columns that every stage emits beside its key, so that any stage may follow any."""
spans = st.integers(0, 9)


@dataclass(frozen=True)
class Numbered:
    """The number of records of a key."""

    n: int = 0


def numbered(call: KeyContext[Numbered]) -> KeyUpdate[Numbered]:
    """Number the records of a key."""
    before = (call.state or Numbered()).n
    rows = [
        OutputRow({"n": n, "value": read.fields["value"], "word": read.fields["word"]}, read.time)
        for n, read in enumerate(call.records, start=before + 1)
    ]
    return KeyUpdate(Numbered(before + len(rows)), rows)


RETURNS = (Column("n", "BIGINT"), Column("value", "BIGINT"), Column("word", "STRING"))


def stage(draw: st.DrawFn, name: str, inputs: tuple[str, ...], window: Any, of: Any, **others: Any) -> Stage:
    """A retracting stage."""
    return Stage(
        name, inputs, window, of, accumulation="retracting", sinks=(PaneLog(name),),
        on_time_pane=draw(st.sampled_from(["always", "when_changed"])),
        final_pane=draw(st.sampled_from(["never", "when_changed", "always"])),
        **{"key": ("key",), **others},
    )  # fmt: skip


def joining(draw: st.DrawFn, left: str, right: str, third: str, kinds: Sequence[str] = JOIN_KINDS) -> Any:
    """A join of two stages, with value and word of the left one, and `third` of the right one if the kind
    shows it.
    """
    kind = draw(st.sampled_from(kinds))
    other = left if kind in ("semi", "anti") else right
    taken = (
        JoinColumn("n", other, third),
        JoinColumn("value", left, "value"),
        JoinColumn("word", left, "word"),
    )
    join = Join(kind, left, right, taken)  # type: ignore[arg-type]
    sides = (("left", left), ("right", right))
    of = tuple(AggregateOutput(side, JoinMembers(name, join.fields_from(name))) for side, name in sides)
    return join, of


def first(draw: st.DrawFn, name: str) -> Stage:
    """A stage over records."""
    lateness, kind = draw(st.integers(0, 4)), draw(st.sampled_from(["windows", "join", "near", "stateful"]))
    sides = tuple(draw(st.permutations(TOPICS)))
    steps = draw(st.sampled_from([(), (FilterStep(Comparison("value", ">", 1)),)]))
    if kind == "stateful":
        window = StatefulFunction(
            function_ref(numbered), state_type(Numbered), RETURNS, draw(st.none() | st.integers(1, 20))
        )
        return Stage(name, sides[:1], window, (), steps, ("key",), sinks=(PaneLog(name),))
    if kind == "near":
        near = draw(st.booleans())
        ends = draw(st.sampled_from([None, Comparison("value", "<", 1)]))
        window = (
            Between(draw(spans), draw(spans)) if near else AsOf(draw(st.none() | st.integers(1, 9)), ends)
        )
        join, of = joining(draw, *sides, "value", JOIN_KINDS if near else ("inner", "left", "semi", "anti"))
        return Stage(
            name, sides, window, of, steps, ("key",), lateness=lateness, join=join, sinks=(PaneLog(name),)
        )
    others = {"trigger": draw(lasting), "lateness": lateness, "steps": steps}
    if kind == "join":
        join, of = joining(draw, *sides, "value")
        return stage(draw, name, sides, draw(windows), of, join=join, **others)
    inputs = sides[: draw(st.integers(1, 2))]
    of = (
        AggregateOutput("n", Count()),
        AggregateOutput("value", Sum("value")),
        AggregateOutput("word", Max("word")),
    )
    return stage(draw, name, inputs, draw(windows), of, **others)


def later(draw: st.DrawFn, name: str, before: Sequence[Stage]) -> Stage:
    """A stage over one or two earlier ones."""
    read = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2, unique_by=lambda each: each.name))
    inputs = tuple(each.name for each in read)
    untimely = not all(each.window.is_event_time_bound for each in read)
    endless = untimely or any(isinstance(each.window, Global) for each in read)
    wide = [
        st.just(SameWindows()),
        st.builds(Fixed, st.integers(1, 30)),
        st.builds(Sliding, *[st.integers(1, 15)] * 2),
    ]
    window = Global() if untimely else draw(st.one_of(st.just(Global()), *(wide[:1] if endless else wide)))
    lateness = max(map(correction_time_ms, read)) + draw(st.sampled_from([0, 0, 3]))
    others = {"trigger": draw(over_panes), "lateness": lateness}
    if len(read) == 2 and draw(st.booleans()):
        join, of = joining(draw, *inputs, "n")
        return stage(draw, name, inputs, window, of, join=join, **others)
    of = draw(
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
    return stage(
        draw, name, inputs, window, of, **{**others, "key": draw(st.sampled_from([("key",), ("key",), ()]))}
    )


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    """One to three stages over records, and stages over existing ones, five at most."""
    stages = [first(draw, f"s{number}") for number in range(draw(st.integers(1, 3)))]
    for number in range(len(stages), draw(st.integers(len(stages), 5))):
        keyed = [each for each in stages if each.key]
        stages.append(later(draw, f"s{number}", keyed))
    read = {name for each in stages for name in each.inputs}
    return Plan("graph", tuple(s for s in (CLICKS, VIEWS) if s.name in read), tuple(stages))


@settings(max_examples=scale_examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=graphs().filter(sound), batches=histories())
def test_every_stage_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    two = read_by(plan, batches)
    assert engine(plan, two, tmp_path_factory.mktemp("state")) == reference(plan, two)


def read_by(plan: Plan, batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The batches of both topics, without records that the plan does not read."""
    names = {source.name for source in plan.sources}
    return [
        replace(b, records=tuple(r for r in b.records if r.source in names)) for b in split_inputs(batches)
    ]


def in_time(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same records in one partition of each topic, each later than the watermark before it; and an end."""
    before, offset, moved = 0, count(), []
    for one in batches:
        records = [
            replace(
                r, partition=0, offset=next(offset), fields={**r.fields, "at": r.fields["at"] + before + 1}
            )
            for r in one.records
        ]
        moved.append(replace(one, records=tuple(records), is_last=False))
        before = int(one.watermark or before)
    return [*moved, InputBatch(len(moved), moved[-1].clock + 1, is_last=True)]


def left(plan: Plan, batches: Sequence[InputBatch]) -> dict[str, Counter[Any]]:
    """What remains of each stage in the end, with counts: inserts minus retractions."""
    evaluator = Evaluator(plan)
    found = {each.name: Counter[Any]() for each in plan.stages}
    for outcome in map(evaluator.run, batches):
        for name, panes in {plan.first_source_stage.name: outcome.panes, **outcome.stage_panes}.items():
            for pane in panes:
                change = 0 if pane.is_restatement else 1 if pane.kind == "insert" else -1
                found[name][pane.key, pane.start, pane.end, pane.values] += change
    return {name: Counter({row: many for row, many in rows.items() if many}) for name, rows in found.items()}


def on_event_time(plan: Plan) -> bool:
    """Whether no part of it depends on the clock."""
    return sound(plan) and not any(each.window.uses_processing_time for each in plan.source_stages)


@settings(max_examples=scale_examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=graphs().filter(on_event_time), batches=histories())
def test_every_stage_converges_to_a_bounded_run(plan: Plan, batches: list[InputBatch]) -> None:
    every = tuple(
        each if each.window.is_record_ordered else replace(each, final_pane="when_changed")
        for each in plan.stages
    )
    live = in_time(read_by(plan, batches))
    plan = replace(plan, stages=every)
    records = tuple(record for batch in live for record in batch.records)
    assert left(plan, live) == left(plan, [InputBatch(0, 0, records, is_last=True)])
