"""Stages over retracting sessions: a merged session is retracted before any downstream window closes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_chains_against_reference import (
    repeating_triggers,
    run_engine,
    run_reference,
    unpunctuated_triggers,
)
from tests.pipelines.engine.operators.test_windows_against_reference import SOURCE

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.sum import Sum
from penstock.engine.errors import LateRetractionError
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.every import Every
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.same_windows import SameWindows
from penstock.engine.windows.sessions import Sessions

SESSION_AGGREGATES = (AggregateOutput("n", Count()), AggregateOutput("total", Sum("value")))
FUNNEL_AGGREGATES = (AggregateOutput("visits", Count()), AggregateOutput("clicks", Sum("n")))
PANE_PER_RECORD = Repeatedly(AfterCount(1))
MINUTE, SECOND = 60_000, 1_000


def make_session_stage(gap: int, lateness: int, trigger: Any, **options: Any) -> Stage:
    """Sessions of a key, retracted as they grow."""
    return Stage(
        "s0", (SOURCE.name,), Sessions(gap), SESSION_AGGREGATES, (), ("key",), trigger, lateness, "retracting",
        sinks=(PaneLog("s0"),), **options,
    )  # fmt: skip


def make_plan(sessions: Stage, window: Any, lateness: int, trigger: Any = PANE_PER_RECORD) -> Plan:
    """A downstream stage, by default emitting at each change."""
    downstream_stage = Stage(
        "s1",
        ("s0",),
        window,
        FUNNEL_AGGREGATES,
        (),
        (),
        trigger,
        lateness,
        "retracting",
        sinks=(PaneLog("s1"),),
    )
    return validate_plan(Plan("funnel", (SOURCE,), (sessions, downstream_stage)))


def make_records(*times: int) -> tuple[InputRecord, ...]:
    """One record of a key at each time; the time is its offset, too."""
    return tuple(InputRecord("records", 0, t, {"key": "a", "at": t, "value": 1, "word": "x"}) for t in times)


def sum_changes(plan: Plan, batches: Sequence[InputBatch]) -> dict[str, Counter[tuple[Any, ...]]]:
    """What remains of each stage in the end, with counts: inserts minus retractions."""
    evaluator, remaining_rows = (
        Evaluator(plan),
        {stage.name: Counter[tuple[Any, ...]]() for stage in plan.stages},
    )
    for outcome in map(evaluator.run, batches):
        for name, panes in {"s0": outcome.panes, **outcome.stage_panes}.items():
            for pane in panes:
                change = 0 if pane.is_restatement else 1 if pane.kind == "insert" else -1
                remaining_rows[name][pane.key, pane.start, pane.end, pane.values] += change
    return {name: Counter({row: n for row, n in rows.items() if n}) for name, rows in remaining_rows.items()}


def sum_bounded_changes(plan: Plan, batches: Sequence[InputBatch]) -> dict[str, Counter[tuple[Any, ...]]]:
    """What remains of each stage after a bounded run over the same records."""
    records = tuple(record for batch in batches for record in batch.records)
    return sum_changes(plan, [InputBatch(0, 0, records, is_last=True)])


def end_input(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The batches, and the end of the input."""
    return [*batches, InputBatch(len(batches), batches[-1].clock + 1, is_last=True)]


SHORT_HISTORY = [
    InputBatch(0, 1, make_records(0), watermark=0),
    InputBatch(1, 2, watermark=12),
    InputBatch(2, 3, make_records(8), watermark=13),
    InputBatch(3, 4, watermark=17),
    InputBatch(4, 5, watermark=20),
]
LONG_HISTORY = [
    InputBatch(0, SECOND, make_records(0), watermark=0),
    InputBatch(1, 10 * SECOND, watermark=0),
    InputBatch(2, 600_001, make_records(*range(20 * SECOND, 8 * MINUTE + 1, 20 * SECOND)), watermark=450_000),
    InputBatch(3, 610_000, watermark=450_000),
]
CASES = {
    "at the end": (make_plan(make_session_stage(10, 5, Default()), SameWindows(), 5), SHORT_HISTORY),
    "early": (
        make_plan(
            make_session_stage(30 * SECOND, 5 * MINUTE, AfterWatermark(early=Every(10 * SECOND))),
            Fixed(MINUTE),
            5 * MINUTE,
        ),
        LONG_HISTORY,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_session_that_outgrows_the_lateness_leaves_no_stale_rows(case: str, tmp_path: Path) -> None:
    plan, batches = CASES[case]
    assert run_engine(plan, end_input(batches), tmp_path) == run_reference(plan, end_input(batches))
    assert sum_changes(plan, end_input(batches)) == sum_bounded_changes(plan, batches)


def test_a_merged_session_is_retracted_when_it_would_have_closed() -> None:
    plan, batches = CASES["at the end"]
    retractions = [
        [row[-9:-4] for row in batch_rows["s0"] if row[-5] == "retract"]
        for batch_rows in run_reference(plan, batches)
    ]
    # The session [0, 10) became part of [0, 18) in batch 2, and closes at 15, which batch 3 reaches first.
    assert retractions == [[], [], [], [(1, "late", 1, True, "retract")], []]


def test_the_reference_refuses_changes_that_are_too_late() -> None:
    sessions, downstream_stage = CASES["at the end"][0].stages
    evaluator = Evaluator(Plan("hasty", (SOURCE,), (replace(sessions, lateness=20), downstream_stage)))
    for batch in (SHORT_HISTORY[0], InputBatch(1, 2, watermark=18)):
        evaluator.run(batch)
    with pytest.raises(LateRetractionError, match="batch 2: s1 received 1 changes"):
        evaluator.run(InputBatch(2, 3, make_records(5), watermark=19))


@st.composite
def growing_histories(draw: st.DrawFn) -> list[InputBatch]:
    """Batches of one key's records, near each other, while the watermark follows them."""
    time, clock, batches = 0, 0, []
    for number in range(draw(st.integers(3, 12))):
        times = []
        for _ in range(draw(st.integers(0, 3))):
            time += draw(st.integers(1, 7))
            times.append(time)
        clock += draw(st.integers(0, 5))
        watermark = max(batches[-1].watermark or 0 if batches else 0, time - draw(st.integers(0, 9)))
        batches.append(InputBatch(number, clock, make_records(*times), watermark=watermark))
    return end_input(batches)


funnels = st.builds(
    lambda gap, lateness, more, first, window, later, final: make_plan(
        make_session_stage(gap, lateness, first, final_pane=final), window, lateness + more, later
    ),
    st.integers(2, 9), st.integers(0, 12), st.sampled_from([0, 0, 5]),
    st.one_of(st.just(Default()), repeating_triggers),
    st.one_of(st.just(SameWindows()), st.builds(Fixed, st.integers(1, 20))),
    st.one_of(st.just(PANE_PER_RECORD), unpunctuated_triggers),
    st.sampled_from(["never", "when_changed", "always"]),
)  # fmt: skip


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=funnels, batches=st.one_of(growing_histories(), histories()))
def test_stages_over_sessions_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    assert run_engine(plan, batches, tmp_path_factory.mktemp("state")) == run_reference(plan, batches)


@settings(max_examples=scale_examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(gap=st.integers(2, 9), lateness=st.integers(0, 12), batches=growing_histories())
def test_remaining_rows_equal_a_bounded_run(gap: int, lateness: int, batches: list[InputBatch]) -> None:
    plan = make_plan(
        make_session_stage(gap, lateness + 9, AfterWatermark(early=PANE_PER_RECORD)), Fixed(5), lateness + 9
    )
    assert sum_changes(plan, batches) == sum_bounded_changes(plan, batches)
