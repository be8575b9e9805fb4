"""Tables of final panes get every complete window: the definition is completed, or refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from tests.pipelines.engine.operators.stage_strategies import histories, stages, triggers
from tests.pipelines.engine.operators.test_windows_against_reference import SOURCE

from penstock.conformance.reference import EvaluatedBatch, Evaluator, InputBatch, Pane
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.pane_timing import (
    check_live_stages,
    has_at_most_one_pane,
    has_final_pane,
)
from penstock.engine.sinks.final_panes import FinalPanes
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.pipelines import catalog
from penstock.stream import (
    Pipeline,
    after_all,
    after_any,
    after_count,
    after_each,
    after_watermark,
    count,
    every,
    fixed,
    global_window,
    or_finally,
    read,
    repeatedly,
    same_windows,
)

COUNTED = read("sensors").key("device").aggregate(n=count())
GLOBAL = COUNTED.window(global_window())
PER_MINUTE = COUNTED.window(fixed("1 minute"))


def run_to_end(stage: Stage, history: list[InputBatch]) -> list[EvaluatedBatch]:
    """Return the panes of a stage over the batches, and at the end of the input."""
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    live_batches = [batch for batch in history if not batch.is_last]
    return [
        evaluator.run(batch)
        for batch in (*live_batches, InputBatch(len(live_batches), live_batches[-1].clock + 1, is_last=True))
    ]


def list_filled_windows(outcomes: list[EvaluatedBatch], history: list[InputBatch]) -> set[tuple[Any, Any]]:
    """Return the windows of size five with records."""
    late_addresses = {row.address for outcome in outcomes for row in outcome.late}
    records = [
        record for batch in history for record in batch.records if record.address not in late_addresses
    ]
    return {(record.fields["key"], record.fields["at"] // 5 * 5) for record in records}


def list_inserts(outcomes: list[EvaluatedBatch]) -> list[Pane]:
    return [pane for outcome in outcomes for pane in outcome.panes if pane.kind == "insert"]


@settings(deadline=None)
@given(stages, histories())
def test_a_table_of_final_panes_has_every_window_once(stage: Stage, history: list[InputBatch]) -> None:
    stage = replace(stage, key=("key",), window=Fixed(5), sinks=(FinalPanes("t"),))
    if not has_final_pane(stage):
        stage = replace(stage, final_pane="always")
    outcomes = run_to_end(stage, history)
    final = [(*pane.key, pane.start) for pane in list_inserts(outcomes) if pane.final]
    assert sorted(final, key=repr) == sorted(list_filled_windows(outcomes, history), key=repr)


@settings(deadline=None)
@given(stages.filter(has_at_most_one_pane), histories())
def test_a_stage_declared_with_one_pane_per_window_emits_one(stage: Stage, history: list[InputBatch]) -> None:
    stage = replace(stage, window=Fixed(5), final_pane="never", accumulation="discarding")
    panes = [(pane.key, pane.start) for pane in list_inserts(run_to_end(stage, history))]
    assert len(panes) == len(set(panes))


@settings(deadline=None)
@given(triggers, histories())
def test_a_trigger_that_cannot_fire_before_the_end_never_does(
    trigger: Trigger, history: list[InputBatch]
) -> None:
    stage = Stage(
        "stage", ("records",), Global(), (AggregateOutput("n", Count()),), trigger=trigger, may_finish=True
    )
    before_the_end = run_to_end(stage, history)[:-1]
    if not trigger.can_fire_before_end:
        assert list_inserts(before_the_end) == []


@pytest.mark.parametrize(
    "pipeline", [PER_MINUTE, PER_MINUTE.trigger(after_watermark(early=every("5 seconds")))]
)
def test_the_pane_of_a_window_that_closes_at_its_end_is_final(pipeline: Pipeline) -> None:
    assert pipeline.write("t", mode="final").plan.only_stage.final_pane == "never"


@pytest.mark.parametrize(
    "pipeline",
    [
        PER_MINUTE.trigger(lateness="1 hour"),
        PER_MINUTE.trigger(repeatedly(after_count(1))),
        PER_MINUTE.trigger(on_time_pane="when_changed"),
    ],
)
def test_a_table_of_final_panes_gets_a_closing_pane(pipeline: Pipeline) -> None:
    assert pipeline.write("t").plan.only_stage.final_pane == "never"
    assert pipeline.write("t", mode="final").plan.only_stage.final_pane == "always"


NEVER_FIRES = {
    "the default": GLOBAL,
    "at the end": GLOBAL.trigger(after_watermark(late=after_count(1))),
    "a part that waits": GLOBAL.trigger(repeatedly(after_all(after_count(1), after_watermark()))),
    "a first part that waits": GLOBAL.trigger(after_each(after_watermark(), repeatedly(after_count(1)))),
    "of a stage over another": GLOBAL.trigger(repeatedly(after_count(1)))
    .accumulation("retracting")
    .then()
    .aggregate(devices=count())
    .window(same_windows()),
}
FIRES = {
    "early": GLOBAL.trigger(after_watermark(early=every("5 seconds"))),
    "a part that is ready": GLOBAL.trigger(repeatedly(after_any(after_count(1), after_watermark()))),
    "until then": GLOBAL.trigger(or_finally(repeatedly(after_count(1)), after_watermark()), may_finish=True),
    "a window that ends": PER_MINUTE,
}


@pytest.mark.parametrize("pipeline", NEVER_FIRES.values(), ids=NEVER_FIRES)
def test_a_live_stream_that_never_emits_is_refused(pipeline: Pipeline) -> None:
    with pytest.raises(DefinitionError, match="waits for the end of a window that never ends"):
        check_live_stages(pipeline.write("t").plan)


def test_a_bounded_run_emits_the_global_window_at_its_end() -> None:
    stored = read("sensors", files="raw/sensors").aggregate(n=count()).window(global_window())
    check_live_stages(stored.write("t").plan)


@pytest.mark.parametrize("pipeline", FIRES.values(), ids=FIRES)
def test_a_live_stream_that_emits_is_accepted(pipeline: Pipeline) -> None:
    check_live_stages(pipeline.write("t").plan)


@pytest.mark.parametrize("name", catalog.pipeline_names())
def test_every_shipped_pipeline_can_run_live(name: str) -> None:
    check_live_stages(catalog.load_plan(name))
