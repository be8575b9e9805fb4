"""Chains of stages equal the reference in each batch, whatever they read and however they emit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.duckdb_partials import partials
from tests.pipelines.engine.operators.graph_runner import GraphRunner
from tests.pipelines.engine.operators.stage_strategies import histories, triggers
from tests.pipelines.engine.operators.stage_strategies import windows as first_windows
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS, SOURCE, pane_row

from penstock.conformance.reference import Evaluator, InputBatch
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import ArrowStep
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.calendar import Calendar
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.same_windows import SameWindows
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding

Rows = list[tuple[Any, ...]]


def halves(table: pa.Table) -> pa.Table:
    """Each element under half of its total, and once more under the other half."""
    half = pc.divide(table.column("total"), 2)
    named = table.append_column("half", half)
    other = table.append_column("half", pc.subtract(table.column("total"), half))
    return pa.concat_tables([named, other])


def halves_of(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The same for the reference."""
    total = fields["total"]
    half = None if total is None else int(total / 2)
    return [{**fields, "half": half}, {**fields, "half": None if total is None else total - half}]


FIRST = (AggregateOutput("n", Count()), AggregateOutput("total", Sum("value")))
SECOND = (
    AggregateOutput("n", Count("n")),
    AggregateOutput("total", Sum("n")),
    AggregateOutput("least", Min("total")),
    AggregateOutput("most", Max("total")),
)
THIRD = (
    AggregateOutput("records", Sum("total")),
    AggregateOutput("values", Distinct("least")),
    AggregateOutput("best", TopN("most", 2)),
    AggregateOutput("few", TopN("most", 2, "n", largest=False)),
    AggregateOutput("windows", Count()),
)
STEPPED = (
    AggregateOutput("n", Sum("n")),
    AggregateOutput("total", Sum("half")),
    AggregateOutput("least", Min("half")),
    AggregateOutput("most", Max("half")),
)
MODES = [["retracting"] * 3, ["discarding", "retracting", "retracting"], ["discarding"] * 3]
lasting = triggers.map(lambda trigger: Repeatedly(trigger) if trigger.can_finish else trigger)
over_panes = lasting.filter(lambda trigger: not trigger.punctuation)
later_windows = st.one_of(
    st.just(SameWindows()),
    st.builds(Fixed, st.integers(1, 30)),
    st.builds(Sliding, st.integers(1, 20), st.integers(1, 12)),
    st.just(Global()),
    st.builds(Calendar, st.just("day"), st.sampled_from(["UTC", "Europe/Berlin"])),
    st.builds(Sessions, st.integers(1, 9)),
)
policies = {
    "on_time_pane": st.sampled_from(["always", "when_changed"]),
    "final_pane": st.sampled_from(["never", "when_changed", "always"]),
}


@st.composite
def chains(draw: st.DrawFn) -> Plan:
    """Two or three stages that may follow each other."""
    more = draw(st.booleans())
    modes = draw(
        st.sampled_from([["retracting"] * 3, ["discarding", "retracting", "retracting"], ["discarding"] * 3])
    )
    lateness = sorted(draw(st.integers(0, 9)) for _ in range(3))
    stepped = draw(st.booleans())

    def stage(
        number: int, reads: str, window: Any, trigger: Trigger, of: Any, key: Any, steps: Any = ()
    ) -> Stage:
        """One stage."""
        return Stage(
            f"s{number}", (reads,), window, of, steps, key, trigger, lateness[number], modes[number],
            **{name: draw(policy) for name, policy in policies.items()}, sinks=(PaneLog(f"s{number}"),),
        )  # fmt: skip

    first = stage(0, SOURCE.name, draw(first_windows), draw(lasting), FIRST, ("key", "word"))
    halved = (ArrowStep(function_ref(halves)),) if stepped else ()
    key = draw(st.sampled_from([(), ("key",), ("n",)])) if not stepped else ("key",)
    of = STEPPED if stepped else SECOND
    of = tuple(output for output in of if output.name not in key)
    stages = [first, stage(1, "s0", draw(later_windows), draw(over_panes), of, key, halved)]
    if more:
        key = draw(st.sampled_from([(), ("total",)]))
        stages.append(stage(2, "s1", draw(later_windows), draw(over_panes), THIRD, key))
    return Plan("chain", (SOURCE,), tuple(stages))


def sound(plan: Plan) -> bool:
    """Whether such stages may follow each other."""
    try:
        validate_plan(plan)
    except DefinitionError:
        return False
    return True


def reference(plan: Plan, batches: Sequence[InputBatch]) -> list[dict[str, Rows]]:
    evaluator = Evaluator(plan, later_steps={"s1": halves_of} if plan.stages[1].steps else {})
    outcomes = [evaluator.run(batch) for batch in batches]
    return [
        {
            name: sorted(map(pane_row, panes), key=repr)
            for name, panes in {"s0": one.panes, **one.stage_panes}.items()
        }
        for one in outcomes
    ]


def engine(plan: Plan, batches: Sequence[InputBatch], folder: Path) -> list[dict[str, Rows]]:
    types = {plan.first_source_stage.name: {field.name: field.type for field in FIELDS}}
    graph = GraphRunner(compile_graph(plan, types), folder)
    answers = []
    for batch in batches:
        after = MAX_TIMESTAMP_MS if batch.is_last else int(batch.watermark or 0)
        came = partials(graph.graph.first_record_stage, batch.records, FIELDS, "at", batch.clock)
        accepted, _ = graph.run({plan.first_source_stage.name: came}, batch.clock, after)
        answers.append({name: shown(one.panes) for name, one in accepted.items()})
    return answers


def shown(panes: pa.Table) -> Rows:
    rows = [row for row in panes.to_pylist() if row["kind"] != "replaced"]
    ours = [{n: v for n, v in row.items() if not n.startswith("replaced_by")} for row in rows]
    return sorted((tuple(as_values(v) for v in row.values()) for row in ours), key=repr)


def as_values(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@settings(max_examples=scale_examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=chains().filter(sound), batches=histories())
def test_every_stage_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    assert engine(plan, batches, tmp_path_factory.mktemp("state")) == reference(plan, batches)


def standing(batches: Sequence[Mapping[str, Rows]], stage: str, columns: int) -> Rows:
    """What remains after applying a stage's inserts and retractions: key, values and window."""
    left: set[tuple[Any, ...]] = set()
    for batch in batches:
        for kind in ("retract", "insert"):
            rows = {row[:columns] for row in batch[stage] if row[columns + 4] == kind}
            left = left | rows if kind == "insert" else left - rows
    return sorted(left, key=repr)


def on_time(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches without a watermark, and an end: nothing in them is late."""
    return [
        *(replace(batch, watermark=0, is_last=False) for batch in batches),
        InputBatch(len(batches), batches[-1].clock + 1, is_last=True),
    ]


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=chains().filter(sound), batches=histories())
def test_all_changes_sum_to_a_bounded_run(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    if any(stage.accumulation != "retracting" for stage in plan.stages) or (
        plan.first_source_stage.window.uses_processing_time
    ):
        return
    plan = replace(plan, stages=tuple(replace(s, final_pane="when_changed") for s in plan.stages))
    ran = engine(plan, on_time(batches), tmp_path_factory.mktemp("state"))
    records = [record for batch in batches for record in batch.records]
    later = {"s1": halves_of} if plan.stages[1].steps else {}
    whole = Evaluator(plan, later_steps=later).run(InputBatch(0, 0, tuple(records), is_last=True))
    for stage in plan.stages:
        columns = len(stage.key) + len(stage.aggregates) + 2
        rows = {"s0": whole.panes, **whole.stage_panes}[stage.name]
        expected = sorted((pane_row(pane)[:columns] for pane in rows if pane.kind == "insert"), key=repr)
        assert standing(ran, stage.name, columns) == expected
