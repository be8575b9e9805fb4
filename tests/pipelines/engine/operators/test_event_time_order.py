"""A stateful function in event-time order returns the same rows live and bounded, timers included."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.stateful_stages import PROPERTY, batch, stages
from tests.pipelines.engine.operators.test_order_windows_against_reference import engine
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
class Seen:
    """The state of a key."""

    records: int = 0
    words: tuple[str, ...] = ()


def told(what: str, seen: Seen, call: KeyContext[Seen]) -> dict[str, Any]:
    """A row with what the function knew."""
    return {"what": f"{what} {','.join(seen.words)}", "seen": seen.records, "now": call.watermark}


def watch(call: KeyContext[Seen]) -> KeyUpdate[Seen]:
    """Report every record, silence after five, then every third instant, and one timer that is long past."""
    seen = call.state or Seen()
    for read in call.records:
        seen = Seen(seen.records + 1, (*seen.words, f"{read.fields['word']}{read.fields['value']}")[-3:])
    timers = [timer for timer in call.pending_timers if not call.records]
    rows = [OutputRow(told("record", seen, call), call.records[0].time)] if call.records else []
    rows += [OutputRow(told(timer.name, seen, call)) for timer in call.due_timers]
    if call.records:
        timers += [Timer(call.records[-1].time + 5, name="quiet"), Timer(call.watermark - 7, name="past")]
    timers += [Timer(timer.at + 3, name="again") for timer in call.due_timers if timer.name != "past"]
    return KeyUpdate(None if "x5" in seen.words else seen, rows, timers)


def stage_of(function: Any, key: tuple[str, ...] = ("key",), forget_after: int | None = None) -> Stage:
    """A stage with this function."""
    window = StatefulFunction(
        function_ref(function), state_type(Seen), RETURNS, forget_after, order="event_time"
    )
    return Stage("watched", ("records",), window, (), key=key, sinks=(PaneLog("watched"),))


@PROPERTY
@given(stage=stages(stage_of, watch), batches=histories())
def test_live_and_bounded_runs_agree_on_records_in_time(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, batches: list[InputBatch]
) -> None:
    batches = ended(within_what_was_read(batches))
    late = late_in(stage, batches)
    kept = tuple(r for one in batches for r in one.records if r.address not in late)
    bounded = [InputBatch(0, 0, kept, is_last=True)]
    live = engine(stage, batches, tmp_path_factory.mktemp("live"))
    assert values(engine(stage, bounded, tmp_path_factory.mktemp("one"))) == values(live)


def ended(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches with an end."""
    if batches[-1].is_last:
        return list(batches)
    return [*batches, InputBatch(len(batches), batches[-1].clock, is_last=True)]


def within_what_was_read(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same batches, their watermarks never ahead of the newest record."""
    newest, watermark, found = -1, -1, []
    for one in batches:
        newest = max([newest, *(record.fields["at"] for record in one.records)])
        watermark = max(watermark, min(int(one.watermark or 0), newest))
        found.append(one if one.is_last else replace(one, watermark=watermark))
    return found


def late_in(stage: Stage, batches: Sequence[InputBatch]) -> set[tuple[str, int, int]]:
    """The addresses of records that arrived behind the watermark."""
    evaluator = Evaluator(validate_plan(Plan("plan", (SOURCE,), (stage,))))
    return {row.address for one in batches for row in evaluator.run(one).late}


def values(batches: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Key, values and event time of all rows, in any batch."""
    return sorted((row[:6] for rows in batches for row in rows), key=repr)


def silence(call: KeyContext[Seen]) -> KeyUpdate[Seen]:
    """Report ten milliseconds of silence."""
    if call.due_timers:
        return KeyUpdate(None, [OutputRow({"what": "silence", "seen": (call.state or Seen()).records})])
    seen = Seen((call.state or Seen()).records + len(call.records))
    return KeyUpdate(seen, timers=[Timer(call.watermark + 10)])


def test_a_timer_fires_between_two_records_of_one_batch(tmp_path: Path) -> None:
    records = (("a", 40, 1), ("a", 1, 1), ("a", 5, 1), ("b", 30, 1))
    bounded = replace(batch(0, 0, *records), is_last=True)
    rows = [[("a", "silence", 2, None, 15), ("b", "silence", 1, None, 40), ("a", "silence", 1, None, 50)]]
    ran = engine(stage_of(silence), [bounded], tmp_path)
    assert [sorted(row[:5] for row in each) for each in ran] == [sorted(row) for row in rows]


def test_records_wait_for_the_watermark_and_are_late_behind_it(tmp_path: Path) -> None:
    stage = stage_of(silence)
    batches = [batch(0, 3, ("a", 5, 1)), batch(1, 5, ("a", 3, 1)), batch(2, 6, ("a", 2, 1)), batch(3, 20)]
    ran = engine(stage, batches, tmp_path)
    assert [[(row[SEEN], row[AT]) for row in rows] for rows in ran] == [[], [], [], [(2, 15)]]
    assert late_in(stage, batches) == {("records", 0, 20)}


def test_a_timer_that_never_advances_is_named(tmp_path: Path) -> None:
    def endless(call: KeyContext[Seen]) -> KeyUpdate[Seen]:
        return KeyUpdate(Seen(), timers=[Timer(call.watermark)])

    with pytest.raises(
        StatefulFunctionError, match=r"endless: key \('a',\) set timers that were due immediately 1000 times"
    ):
        engine(stage_of(endless), [batch(0, 9, ("a", 1, 1))], tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "time"}, "stateful.order: 'time'. Write one of: arrival, event_time"),
        ({"order": "event_time", "clock": True}, "stateful.order: event_time with processing-time timers"),
        ({"order": "event_time", "vectorized": True}, "stateful.order: event_time with vectorized"),
    ],
)
def test_options_that_event_time_order_lacks_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        StatefulFunction(function_ref(watch), state_type(Seen), RETURNS, **options)
