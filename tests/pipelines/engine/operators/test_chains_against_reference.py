"""Chains of stages equal the reference in each batch, for every input and trigger."""

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
from tests.pipelines.engine.operators.duckdb_partials import compute_partials
from tests.pipelines.engine.operators.graph_runner import GraphRunner
from tests.pipelines.engine.operators.stage_strategies import histories, triggers
from tests.pipelines.engine.operators.stage_strategies import windows as first_windows
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS, SOURCE, make_pane_row

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


def split_in_halves(table: pa.Table) -> pa.Table:
    """Each element under half of its total, and once more under the other half."""
    half = pc.divide(table.column("total"), 2)
    first_halves = table.append_column("half", half)
    second_halves = table.append_column("half", pc.subtract(table.column("total"), half))
    return pa.concat_tables([first_halves, second_halves])


def split_row_in_halves(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The same for the reference."""
    total = fields["total"]
    half = None if total is None else int(total / 2)
    return [{**fields, "half": half}, {**fields, "half": None if total is None else total - half}]


FIRST_AGGREGATES = (AggregateOutput("n", Count()), AggregateOutput("total", Sum("value")))
SECOND_AGGREGATES = (
    AggregateOutput("n", Count("n")),
    AggregateOutput("total", Sum("n")),
    AggregateOutput("least", Min("total")),
    AggregateOutput("most", Max("total")),
)
THIRD_AGGREGATES = (
    AggregateOutput("records", Sum("total")),
    AggregateOutput("values", Distinct("least")),
    AggregateOutput("best", TopN("most", 2)),
    AggregateOutput("few", TopN("most", 2, "n", largest=False)),
    AggregateOutput("windows", Count()),
)
AGGREGATES_OF_HALVES = (
    AggregateOutput("n", Sum("n")),
    AggregateOutput("total", Sum("half")),
    AggregateOutput("least", Min("half")),
    AggregateOutput("most", Max("half")),
)
ACCUMULATION_MODES = [["retracting"] * 3, ["discarding", "retracting", "retracting"], ["discarding"] * 3]
repeating_triggers = triggers.map(lambda trigger: Repeatedly(trigger) if trigger.can_finish else trigger)
unpunctuated_triggers = repeating_triggers.filter(lambda trigger: not trigger.punctuation)
later_windows = st.one_of(
    st.just(SameWindows()),
    st.builds(Fixed, st.integers(1, 30)),
    st.builds(Sliding, st.integers(1, 20), st.integers(1, 12)),
    st.just(Global()),
    st.builds(Calendar, st.just("day"), st.sampled_from(["UTC", "Europe/Berlin"])),
    st.builds(Sessions, st.integers(1, 9)),
)
pane_policies = {
    "on_time_pane": st.sampled_from(["always", "when_changed"]),
    "final_pane": st.sampled_from(["never", "when_changed", "always"]),
}


@st.composite
def chained_plans(draw: st.DrawFn) -> Plan:
    """Two or three stages that may follow each other."""
    has_third_stage = draw(st.booleans())
    modes = draw(
        st.sampled_from([["retracting"] * 3, ["discarding", "retracting", "retracting"], ["discarding"] * 3])
    )
    lateness = sorted(draw(st.integers(0, 9)) for _ in range(3))
    has_step = draw(st.booleans())

    def make_stage(
        number: int,
        input_name: str,
        window: Any,
        trigger: Trigger,
        aggregates: Any,
        key: Any,
        steps: Any = (),
    ) -> Stage:
        """One stage."""
        return Stage(
            f"s{number}", (input_name,), window, aggregates, steps, key, trigger, lateness[number], modes[number],
            **{name: draw(policy) for name, policy in pane_policies.items()}, sinks=(PaneLog(f"s{number}"),),
        )  # fmt: skip

    first_stage = make_stage(
        0, SOURCE.name, draw(first_windows), draw(repeating_triggers), FIRST_AGGREGATES, ("key", "word")
    )
    steps = (ArrowStep(function_ref(split_in_halves)),) if has_step else ()
    key = draw(st.sampled_from([(), ("key",), ("n",)])) if not has_step else ("key",)
    aggregates = AGGREGATES_OF_HALVES if has_step else SECOND_AGGREGATES
    aggregates = tuple(output for output in aggregates if output.name not in key)
    stages = [
        first_stage,
        make_stage(1, "s0", draw(later_windows), draw(unpunctuated_triggers), aggregates, key, steps),
    ]
    if has_third_stage:
        key = draw(st.sampled_from([(), ("total",)]))
        stages.append(
            make_stage(2, "s1", draw(later_windows), draw(unpunctuated_triggers), THIRD_AGGREGATES, key)
        )
    return Plan("chain", (SOURCE,), tuple(stages))


def is_valid_plan(plan: Plan) -> bool:
    """Whether such stages may follow each other."""
    try:
        validate_plan(plan)
    except DefinitionError:
        return False
    return True


def run_reference(plan: Plan, batches: Sequence[InputBatch]) -> list[dict[str, Rows]]:
    evaluator = Evaluator(plan, later_steps={"s1": split_row_in_halves} if plan.stages[1].steps else {})
    outcomes = [evaluator.run(batch) for batch in batches]
    return [
        {
            name: sorted(map(make_pane_row, panes), key=repr)
            for name, panes in {"s0": outcome.panes, **outcome.stage_panes}.items()
        }
        for outcome in outcomes
    ]


def run_engine(plan: Plan, batches: Sequence[InputBatch], folder: Path) -> list[dict[str, Rows]]:
    types = {plan.first_source_stage.name: {field.name: field.type for field in FIELDS}}
    runner = GraphRunner(compile_graph(plan, types), folder)
    rows_by_batch = []
    for batch in batches:
        watermark = MAX_TIMESTAMP_MS if batch.is_last else int(batch.watermark or 0)
        stage_input = compute_partials(
            runner.graph.first_record_stage, batch.records, FIELDS, "at", batch.clock
        )
        results, _ = runner.run({plan.first_source_stage.name: stage_input}, batch.clock, watermark)
        rows_by_batch.append({name: list_pane_rows(result.panes) for name, result in results.items()})
    return rows_by_batch


def list_pane_rows(panes: pa.Table) -> Rows:
    rows = [row for row in panes.to_pylist() if row["kind"] != "replaced"]
    visible_rows = [{n: v for n, v in row.items() if not n.startswith("replaced_by")} for row in rows]
    return sorted((tuple(to_hashable(v) for v in row.values()) for row in visible_rows), key=repr)


def to_hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@settings(max_examples=scale_examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=chained_plans().filter(is_valid_plan), batches=histories())
def test_every_stage_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    assert run_engine(plan, batches, tmp_path_factory.mktemp("state")) == run_reference(plan, batches)


def apply_changes(batches: Sequence[Mapping[str, Rows]], stage: str, columns: int) -> Rows:
    """What remains after applying a stage's inserts and retractions: key, values and window."""
    remaining_rows: set[tuple[Any, ...]] = set()
    for batch in batches:
        for kind in ("retract", "insert"):
            rows = {row[:columns] for row in batch[stage] if row[columns + 4] == kind}
            remaining_rows = remaining_rows | rows if kind == "insert" else remaining_rows - rows
    return sorted(remaining_rows, key=repr)


def end_without_watermarks(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches without a watermark, and an end: nothing in them is late."""
    return [
        *(replace(batch, watermark=0, is_last=False) for batch in batches),
        InputBatch(len(batches), batches[-1].clock + 1, is_last=True),
    ]


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=chained_plans().filter(is_valid_plan), batches=histories())
def test_all_changes_sum_to_a_bounded_run(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    if any(stage.accumulation != "retracting" for stage in plan.stages) or (
        plan.first_source_stage.window.uses_processing_time
    ):
        return
    plan = replace(plan, stages=tuple(replace(s, final_pane="when_changed") for s in plan.stages))
    live_rows = run_engine(plan, end_without_watermarks(batches), tmp_path_factory.mktemp("state"))
    records = [record for batch in batches for record in batch.records]
    later_steps = {"s1": split_row_in_halves} if plan.stages[1].steps else {}
    bounded_outcome = Evaluator(plan, later_steps=later_steps).run(
        InputBatch(0, 0, tuple(records), is_last=True)
    )
    for stage in plan.stages:
        columns = len(stage.key) + len(stage.aggregates) + 2
        rows = {"s0": bounded_outcome.panes, **bounded_outcome.stage_panes}[stage.name]
        expected = sorted((make_pane_row(pane)[:columns] for pane in rows if pane.kind == "insert"), key=repr)
        assert apply_changes(live_rows, stage.name, columns) == expected
