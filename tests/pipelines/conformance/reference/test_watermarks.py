"""The watermark of the reference: partitions, idleness, future records and the ends of the calendar."""

from dataclasses import replace
from math import inf

import pytest
from tests.pipelines.plan_strategies import SOURCE, build_plan

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.plan.sources import Deduplication, WatermarkStrategy
from penstock.engine.plan.stages import Plan
from penstock.engine.windows.fixed import Fixed

BOTH = frozenset({(SOURCE, 0), (SOURCE, 1)})


def watermarks(plan: Plan, *batches: tuple[int, dict[int, list[int]]]) -> list[float]:
    """Return the watermark after each batch of (clock, event times by partition)."""
    evaluator = Evaluator(plan)
    offsets = [0, 0]
    found = []
    for number, (clock, times) in enumerate(batches):
        records = []
        for partition, some in times.items():
            for time in some:
                records.append(
                    InputRecord(SOURCE, partition, offsets[partition], {"key": "k", "value": 1, "at": time})
                )
                offsets[partition] += 1
        found.append(evaluator.run(InputBatch(number, clock, tuple(records), BOTH)).watermark)
    return found


def plan(**rule: object) -> Plan:
    return build_plan(Fixed(10), watermark=WatermarkStrategy(**rule))


def test_the_watermark_is_the_lowest_partition_minus_the_max_out_of_orderness() -> None:
    found = watermarks(
        plan(max_out_of_orderness=5), (0, {0: [100]}), (0, {1: [50, 40]}), (0, {1: [200]}), (0, {0: [90]})
    )
    assert found == [-inf, 45, 95, 95]


def test_a_partition_without_records_holds_the_watermark_until_it_is_idle() -> None:
    found = watermarks(
        plan(idle_after=30),
        (0, {0: [100]}),
        (29, {0: [200]}),
        (30, {0: [300]}),
        (31, {1: [50]}),
        (61, {1: [400]}),
    )
    assert found == [-inf, -inf, 300, 300, 400]


def test_the_watermark_stays_when_all_partitions_are_idle() -> None:
    assert watermarks(plan(idle_after=30), (0, {0: [100], 1: [100]}), (1_000, {})) == [100, 100]


def test_the_watermark_follows_the_clock_when_all_are_idle_if_configured() -> None:
    rule = plan(idle_after=30, advance_when_idle=True, max_out_of_orderness=5)
    assert watermarks(rule, (0, {0: [100], 1: [100]}), (20, {}), (300, {}), (310, {0: [250]})) == [
        95,
        95,
        295,
        295,
    ]


@pytest.mark.parametrize(("policy", "quarantined"), [("quarantine", 1), ("accept", 0)])
def test_a_future_record_never_advances_the_watermark(policy: str, quarantined: int) -> None:
    evaluator = Evaluator(plan(max_future_skew=10, future_records=policy))
    records = tuple(
        InputRecord(SOURCE, 0, offset, {"key": "k", "value": 1, "at": time})
        for offset, time in enumerate([5, 1_000_000])
    )
    outcome = evaluator.run(InputBatch(0, 100, records))
    assert outcome.watermark == 5
    assert [row.reason for row in outcome.quarantined] == ["future_event_time"] * quarantined
    assert outcome.accounts[SOURCE, 0].accepted == 2 - quarantined


@pytest.mark.parametrize("time", [None, "soon", 1.5, True])
def test_a_record_without_an_event_time_is_quarantined(time: object) -> None:
    evaluator = Evaluator(plan())
    outcome = evaluator.run(
        InputBatch(0, 0, (InputRecord(SOURCE, 0, 0, {"key": "k", "value": 1, "at": time}),))
    )
    assert [row.reason for row in outcome.quarantined] == ["no_event_time"]
    assert outcome.watermark == -inf


def test_a_malformed_record_keeps_its_reason() -> None:
    evaluator = Evaluator(plan())
    outcome = evaluator.run(InputBatch(0, 0, (InputRecord(SOURCE, 0, 0, {}, error="malformed"),)))
    assert [row.reason for row in outcome.quarantined] == ["malformed"]


def test_steps_do_not_change_the_event_time_of_a_record() -> None:
    evaluator = Evaluator(plan(), steps=lambda fields: [{**fields, "at": 95}, {**fields, "at": None}])
    record = InputRecord(SOURCE, 0, 0, {"key": "k", "value": 1, "at": 1})
    outcome = evaluator.run(InputBatch(0, 0, (record,), is_last=True))
    assert [(pane.start, pane.end, pane.records) for pane in outcome.panes] == [(0, 10, 2)]


def test_a_duplicate_is_known_until_the_horizon_has_passed() -> None:
    base = plan()
    source = replace(base.sources[0], deduplication=Deduplication(("value",), 100))
    evaluator = Evaluator(replace(base, sources=(source,)))
    seen = []
    for number, (value, time) in enumerate(
        [(1, 0), (1, 50), (2, 99), (1, 99), (2, 100), (1, 150), (None, 1), (None, 1)]
    ):
        record = InputRecord(SOURCE, 0, number, {"key": "k", "value": value, "at": time})
        seen.append(evaluator.run(InputBatch(number, 0, (record,))).accounts[SOURCE, 0].duplicate)
    assert seen == [0, 1, 0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("time", [-62_135_596_800_000, 253_402_300_799_999, 2**62, -(2**62)])
def test_windows_at_the_ends_of_the_calendar_are_evaluated(time: int) -> None:
    from penstock.engine.windows.calendar import Calendar
    from penstock.engine.windows.sessions import Sessions
    from penstock.engine.windows.sliding import Sliding

    for window in (
        Fixed(60_000),
        Sliding(60_000, 7_000),
        Sessions(60_000),
        Calendar("month", "Europe/Berlin"),
    ):
        evaluator = Evaluator(build_plan(window))
        record = InputRecord(SOURCE, 0, 0, {"key": "k", "value": 1, "at": time})
        outcome = evaluator.run(InputBatch(0, 0, (record,), is_last=True))
        assert outcome.panes
        assert all(pane.start <= time < pane.end for pane in outcome.panes)
