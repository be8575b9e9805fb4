"""Properties of the reference evaluator, for random plans and random batches."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.plan_strategies import (
    PARTITIONS,
    arrivals,
    assign_offsets,
    build_plan,
    event_time_plans,
    event_windows,
    lasting_triggers,
    modes,
    order_windows,
    plans,
    runs,
    triggers,
    watermarks,
)

from penstock.conformance.reference import EvaluatedBatch, InputBatch, Pane, evaluate, evaluate_bounded
from penstock.engine.plan.stages import Plan
from penstock.engine.triggers.default import Default
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.sessions import Sessions

SLOWLY = settings(deadline=None, max_examples=scale_examples(80), suppress_health_check=list(HealthCheck))


def collect_panes(outcomes: list[EvaluatedBatch]) -> list[Pane]:
    return [pane for outcome in outcomes for pane in outcome.panes]


def count_remaining_rows(outcomes: list[EvaluatedBatch]) -> Counter[tuple]:
    """Count inserts minus retractions.

    An on-time or final pane that changes nothing inserts a row that exists already, and counts once.
    """
    rows: Counter[tuple] = Counter()
    for pane in collect_panes(outcomes):
        row = (pane.key, pane.start, pane.end, pane.values)
        confirms = pane.kind == "insert" and pane.pane_index > 0 and rows[row] == 1
        rows[row] += 0 if confirms else 1 if pane.kind == "insert" else -1
    return +rows


def last_values(outcomes: list[EvaluatedBatch]) -> dict[tuple, tuple]:
    """Return the last values of each window that was not replaced."""
    describe_values: dict[tuple, tuple] = {}
    for outcome in outcomes:
        for replaced_window in outcome.replaced:
            describe_values.pop((replaced_window.key, replaced_window.start, replaced_window.end), None)
        for pane in outcome.panes:
            window_id = (pane.key, pane.start, pane.end)
            if pane.kind == "insert":
                describe_values[window_id] = pane.values
            elif describe_values.get(window_id) == pane.values:
                del describe_values[window_id]
    return describe_values


def evaluate_bounded_without_late(
    plan: Plan, batches: list[InputBatch], outcomes: list[EvaluatedBatch]
) -> EvaluatedBatch:
    """Evaluate a bounded run over the records that were neither late nor quarantined."""
    excluded = {row.address for outcome in outcomes for row in (*outcome.late, *outcome.quarantined)}
    records = [record for batch in batches for record in batch.records if record.address not in excluded]
    no_skew_limit = replace(plan.sources[0].watermark, max_future_skew=None)
    return evaluate_bounded(
        replace(plan, sources=(replace(plan.sources[0], watermark=no_skew_limit),)), records, 0
    )


@SLOWLY
@given(plans(), runs())
def test_every_record_is_counted_in_one_account(plan: Plan, batches: list[InputBatch]) -> None:
    for batch, outcome in zip(batches, evaluate(plan, batches), strict=True):
        assert all(account.is_balanced for account in outcome.accounts.values())
        assert sum(account.read for account in outcome.accounts.values()) == len(batch.records)


@SLOWLY
@given(plans(), runs())
def test_the_same_batches_give_the_same_rows(plan: Plan, batches: list[InputBatch]) -> None:
    assert evaluate(plan, batches) == evaluate(plan, batches)


@SLOWLY
@given(plans(), runs())
def test_the_watermark_and_pane_numbers_never_decrease(plan: Plan, batches: list[InputBatch]) -> None:
    outcomes = evaluate(plan, batches)
    watermarks = [outcome.watermark for outcome in outcomes]
    assert watermarks == sorted(watermarks)
    numbers: dict[tuple, list[int]] = defaultdict(list)
    for pane in collect_panes(outcomes):
        if pane.kind == "insert" and not isinstance(plan.only_stage.window, Sessions):
            numbers[pane.key, pane.start, pane.end, pane.window_number].append(pane.pane_index)
    assert all(found == list(range(len(found))) for found in numbers.values())


@SLOWLY
@given(event_time_plans(), runs())
def test_a_window_emits_at_most_one_pane_per_batch(plan: Plan, batches: list[InputBatch]) -> None:
    for outcome in evaluate(plan, batches):
        shown = Counter((pane.key, pane.start, pane.end, pane.kind) for pane in outcome.panes)
        assert all(times == 1 for times in shown.values())


@SLOWLY
@given(event_time_plans(), runs())
def test_timing_follows_the_end_of_the_window(plan: Plan, batches: list[InputBatch]) -> None:
    before = float("-inf")
    for outcome in evaluate(plan, batches):
        for pane in outcome.panes:
            if pane.kind == "insert":
                assert (pane.timing == "early") == (outcome.watermark < pane.end)
                assert pane.timing != "on_time" or before < pane.end
                assert (pane.on_time_index == -1) == (pane.timing == "early")
        before = outcome.watermark


@SLOWLY
@given(event_windows, modes, st.lists(arrivals, max_size=25), st.data())
def test_final_values_do_not_depend_on_batches(window, mode, arrivals_in_order, data) -> None:
    """The lateness is large, so no record is late in any split."""
    plan = build_plan(window, Default(), lateness=10**9, accumulation=mode)
    records = assign_offsets(arrivals_in_order)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=5)))
    edges = [0, *cuts, len(records)]
    pieces = [tuple(records[a:b]) for a, b in pairwise(edges)]
    batches = [InputBatch(n, n * 1_000, piece, PARTITIONS) for n, piece in enumerate(pieces)]
    outcomes = evaluate(
        plan, [*batches, InputBatch(len(batches), 10**6, partitions=PARTITIONS, is_last=True)]
    )
    whole = evaluate_bounded(plan, records, 0)
    if mode == "discarding":
        return
    assert last_values(outcomes) == last_values([whole])


@SLOWLY
@given(event_windows, lasting_triggers, watermarks, st.integers(0, 20), runs())
def test_inserts_minus_retracts_are_the_bounded_run(window, trigger, rule, lateness, batches) -> None:
    plan = build_plan(
        window, trigger, rule, lateness=lateness * 1_000, accumulation="retracting", final_pane="when_changed"
    )
    outcomes = evaluate(plan, batches)
    partly_late = {row.address for outcome in outcomes for row in outcome.late}
    with_default_trigger = replace(plan, stages=(replace(plan.only_stage, trigger=Default()),))
    if (not is_sliding(plan) or not partly_late) and not has_reopened_session(plan, outcomes):
        assert count_remaining_rows(outcomes) == count_remaining_rows(
            [evaluate_bounded_without_late(with_default_trigger, batches, outcomes)]
        )


def has_reopened_session(plan: Plan, outcomes: list[EvaluatedBatch]) -> bool:
    """Return whether a new session touches a closed one. A bounded run merges both."""
    spans = sorted((key, start, end) for key, start, end, _ in count_remaining_rows(outcomes))
    meet = (one[0] == other[0] and other[1] <= one[2] for one, other in pairwise(spans))
    return isinstance(plan.only_stage.window, Sessions) and any(meet)


def is_sliding(plan: Plan) -> bool:
    return type(plan.only_stage.window).__name__ == "Sliding"


@SLOWLY
@given(event_windows, lasting_triggers, runs())
def test_discarded_panes_add_up_to_the_bounded_run(window, trigger, batches) -> None:
    plan = build_plan(window, trigger, lateness=10**9, accumulation="discarding", final_pane="when_changed")
    outcomes = evaluate(plan, batches)
    shown = sum(pane.records for pane in collect_panes(outcomes))
    assert shown == sum(pane.records for pane in evaluate_bounded_without_late(plan, batches, outcomes).panes)


@SLOWLY
@given(triggers, runs())
def test_records_after_a_finished_trigger_are_late(trigger, batches) -> None:
    plan = build_plan(Global(), trigger, accumulation="accumulating")
    outcomes = evaluate(plan, batches)
    done: set[tuple] = set()
    for outcome in outcomes:
        assert {row.key for row in outcome.late if row.reason == "finished"} <= done
        done |= {pane.key for pane in outcome.panes if pane.final}


@SLOWLY
@given(order_windows, st.lists(arrivals, max_size=25), st.data())
def test_order_windows_do_not_depend_on_batches(window, arrivals_in_order, data) -> None:
    """All batches have one clock, because time policies depend on it."""
    plan = build_plan(window)
    records = assign_offsets(arrivals_in_order)
    cut = data.draw(st.integers(0, len(records)))
    ordered = sorted(records, key=lambda record: record.address)
    pieces = [tuple(ordered[:cut]), tuple(ordered[cut:])]
    parts = evaluate(plan, [InputBatch(n, 0, piece, PARTITIONS) for n, piece in enumerate(pieces)])
    whole = evaluate(plan, [InputBatch(0, 0, tuple(ordered), PARTITIONS)])
    assert [describe_values(pane) for pane in collect_panes(parts)] == [
        describe_values(pane) for pane in collect_panes(whole)
    ]


def describe_values(pane: Pane) -> tuple:
    return (pane.key, pane.window_number, pane.start, pane.end, pane.values, pane.records)
