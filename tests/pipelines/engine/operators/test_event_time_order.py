"""A stateful function in event-time order returns the same rows live and bounded, timers included."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.stateful_stages import make_batch, property_settings, stages
from tests.pipelines.engine.operators.test_order_windows_against_reference import run_engine
from tests.pipelines.engine.operators.test_windows_against_reference import SOURCE

from penstock.conformance.reference import Evaluator, InputBatch
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError, StatefulFunctionError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog

RETURNS = (Column("what", "STRING"), Column("seen", "BIGINT"), Column("now", "BIGINT"))
WHAT, SEEN, AT = 1, 2, 4


@dataclass(frozen=True)
class RecordHistory:
    """The state of a key."""

    records: int = 0
    words: tuple[str, ...] = ()


def make_row(what: str, history: RecordHistory, call: KeyContext[RecordHistory]) -> dict[str, Any]:
    """A row with the state and the watermark of the call."""
    return {"what": f"{what} {','.join(history.words)}", "seen": history.records, "now": call.watermark}


def watch_records(call: KeyContext[RecordHistory]) -> KeyUpdate[RecordHistory]:
    """Report every record, silence after five, then every third millisecond, and one timer in the past."""
    history = call.state or RecordHistory()
    for read in call.records:
        history = RecordHistory(
            history.records + 1, (*history.words, f"{read.fields['word']}{read.fields['value']}")[-3:]
        )
    timers = [timer for timer in call.pending_timers if not call.records]
    rows = [OutputRow(make_row("record", history, call), call.records[0].time)] if call.records else []
    rows += [OutputRow(make_row(timer.name, history, call)) for timer in call.due_timers]
    if call.records:
        timers += [Timer(call.records[-1].time + 5, name="quiet"), Timer(call.watermark - 7, name="past")]
    timers += [Timer(timer.at + 3, name="again") for timer in call.due_timers if timer.name != "past"]
    return KeyUpdate(None if "x5" in history.words else history, rows, timers)


def make_stage(function: Any, key: tuple[str, ...] = ("key",), forget_after: int | None = None) -> Stage:
    """A stage with this function."""
    window = StatefulFunction(
        function_ref(function), state_type(RecordHistory), RETURNS, forget_after, order="event_time"
    )
    return Stage("watched", ("records",), window, (), key=key, sinks=(PaneLog("watched"),))


@property_settings
@given(stage=stages(make_stage, watch_records), batches=histories())
def test_live_and_bounded_runs_agree_on_records_in_time(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, batches: list[InputBatch]
) -> None:
    batches = end_input(limit_watermarks(batches))
    late_addresses = find_late_addresses(stage, batches)
    records_in_time = tuple(r for batch in batches for r in batch.records if r.address not in late_addresses)
    bounded_input = [InputBatch(0, 0, records_in_time, is_last=True)]
    live_rows = run_engine(stage, batches, tmp_path_factory.mktemp("live"))
    assert sort_rows(run_engine(stage, bounded_input, tmp_path_factory.mktemp("one"))) == sort_rows(live_rows)


def end_input(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches with an end."""
    if batches[-1].is_last:
        return list(batches)
    return [*batches, InputBatch(len(batches), batches[-1].clock, is_last=True)]


def limit_watermarks(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches, their watermarks never ahead of the newest record."""
    newest, watermark, limited = -1, -1, []
    for batch in batches:
        newest = max([newest, *(record.fields["at"] for record in batch.records)])
        watermark = max(watermark, min(int(batch.watermark or 0), newest))
        limited.append(batch if batch.is_last else replace(batch, watermark=watermark))
    return limited


def find_late_addresses(stage: Stage, batches: Sequence[InputBatch]) -> set[tuple[str, int, int]]:
    """The addresses of records that arrived behind the watermark."""
    evaluator = Evaluator(validate_plan(Plan("plan", (SOURCE,), (stage,))))
    return {row.address for batch in batches for row in evaluator.run(batch).late}


def sort_rows(batches: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Key, values and event time of all rows, in any batch."""
    return sorted((row[:6] for rows in batches for row in rows), key=repr)


def report_silence(call: KeyContext[RecordHistory]) -> KeyUpdate[RecordHistory]:
    """Report ten milliseconds of silence."""
    if call.due_timers:
        return KeyUpdate(
            None, [OutputRow({"what": "silence", "seen": (call.state or RecordHistory()).records})]
        )
    history = RecordHistory((call.state or RecordHistory()).records + len(call.records))
    return KeyUpdate(history, timers=[Timer(call.watermark + 10)])


def test_a_timer_fires_between_two_records_of_one_batch(tmp_path: Path) -> None:
    records = (("a", 40, 1), ("a", 1, 1), ("a", 5, 1), ("b", 30, 1))
    bounded_input = replace(make_batch(0, 0, *records), is_last=True)
    expected_rows = [
        [("a", "silence", 2, None, 15), ("b", "silence", 1, None, 40), ("a", "silence", 1, None, 50)]
    ]
    live_rows = run_engine(make_stage(report_silence), [bounded_input], tmp_path)
    assert [sorted(row[:5] for row in batch_rows) for batch_rows in live_rows] == [
        sorted(row) for row in expected_rows
    ]


def test_records_wait_for_the_watermark_and_are_late_behind_it(tmp_path: Path) -> None:
    stage = make_stage(report_silence)
    batches = [
        make_batch(0, 3, ("a", 5, 1)),
        make_batch(1, 5, ("a", 3, 1)),
        make_batch(2, 6, ("a", 2, 1)),
        make_batch(3, 20),
    ]
    live_rows = run_engine(stage, batches, tmp_path)
    assert [[(row[SEEN], row[AT]) for row in rows] for rows in live_rows] == [[], [], [], [(2, 15)]]
    assert find_late_addresses(stage, batches) == {("records", 0, 20)}


def test_a_timer_that_never_advances_is_named(tmp_path: Path) -> None:
    def endless(call: KeyContext[RecordHistory]) -> KeyUpdate[RecordHistory]:
        return KeyUpdate(RecordHistory(), timers=[Timer(call.watermark)])

    with pytest.raises(
        StatefulFunctionError, match=r"endless: key \('a',\) set timers that were due immediately 1000 times"
    ):
        run_engine(make_stage(endless), [make_batch(0, 9, ("a", 1, 1))], tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "time"}, "stateful.order: 'time' is not known. Write one of: arrival, event_time"),
        ({"order": "event_time", "clock": True}, "stateful.order: event_time with processing-time timers"),
        ({"order": "event_time", "vectorized": True}, "stateful.order: event_time with vectorized"),
    ],
)
def test_options_that_event_time_order_lacks_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        StatefulFunction(function_ref(watch_records), state_type(RecordHistory), RETURNS, **options)
