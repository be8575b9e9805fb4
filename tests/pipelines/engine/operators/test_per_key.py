"""A stateful function is called only for keys with records or due timers, and expired state is gone."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.engine.operators.duckdb_partials import elements
from tests.pipelines.engine.operators.stateful_stages import batch
from tests.pipelines.engine.operators.test_order_windows_against_reference import engine
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS, SOURCE

from penstock.engine.batch_time import BatchTime
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import StatefulFunctionError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.history.batch_history import is_cut_by_clock
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS


@dataclass(frozen=True)
class Seen:
    """The state of a key."""

    records: int = 0
    total: int = 0
    words: tuple[str, ...] = ()
    marks: dict[str, int] = field(default_factory=dict)
    times: dict[int, tuple[str, ...]] = field(default_factory=dict)


RETURNS = (Column("what", "STRING"), Column("seen", "BIGINT"), Column("total", "BIGINT"))


def watch(call: KeyContext[Seen]) -> KeyUpdate[Seen]:
    """Report great values, silence after five of event time, and a clock timer after every third record."""
    seen, rows = call.state or Seen(), []
    timers = [timer for timer in call.pending_timers if timer.name != "quiet" or not call.records]
    for read in call.records:
        value, word = read.fields["value"] or 0, read.fields["word"] or ""
        seen = replace(
            seen, records=seen.records + 1, total=seen.total + value, words=(*seen.words, word)[-3:],
            marks={**seen.marks, word: read.time}, times={**seen.times, read.time: (word,)},
        )  # fmt: skip
        if value > 3:
            rows.append(OutputRow(told("great", seen), at=read.time))
        if seen.records % 3 == 0:
            timers.append(Timer(call.batch_clock + 4, "processing", f"third{seen.records}"))
    if call.records:
        timers.append(Timer(call.records[-1].time + 5, "event", "quiet"))
    rows += [OutputRow(told(f"{timer.name} {','.join(seen.words)}", seen)) for timer in call.due_timers]
    timers += [Timer(timer.at + 3, "event", "again") for timer in call.due_timers if timer.name == "quiet"]
    timers += [replace(timer, at=timer.at + 5) for timer in call.due_timers if timer.name == "again"]
    kept = None if seen.total < -1 else seen
    return KeyUpdate(kept, rows, timers)


def told(what: str, seen: Seen) -> dict[str, Any]:
    """A row of the result."""
    return {"what": what, "seen": seen.records, "total": seen.total}


def stage_of(function: Any, key: tuple[str, ...] = ("key",), forget_after: int | None = None) -> Stage:
    """A stage with this function."""
    remembering = StatefulFunction(
        function_ref(function), state_type(Seen), RETURNS, forget_after, clock=True
    )
    return Stage("watched", ("records",), remembering, (), key=key, sinks=(PaneLog("watched"),))


def test_a_key_is_called_only_for_records_or_due_timers(tmp_path: Path) -> None:
    asked: Counter[Any] = Counter()

    def counting(call: KeyContext[Seen]) -> KeyUpdate[Seen]:
        asked[call.key] += 1
        answer = watch(call)
        return replace(answer, timers=[timer for timer in answer.timers or () if timer.name != "again"])

    ran = engine(
        stage_of(counting),
        [
            batch(0, 0, ("a", 1, 1), ("b", 2, 5)),
            batch(1, 5, ("b", 3, 1)),
            batch(2, 6),
            batch(3, 20),
            batch(4, 21),
        ],
        tmp_path,
    )
    assert asked == {("a",): 2, ("b",): 3}
    assert [[row[1:4] for row in rows] for rows in ran] == [
        [("great", 1, 5)], [], [("quiet ", 1, 1)], [("quiet ,", 2, 6)], []
    ]  # fmt: skip


def test_a_silent_key_expires(tmp_path: Path) -> None:
    ready = compile_stage(stage_of(watch, forget_after=10), {each.name: each.type for each in FIELDS})
    tree = trees.create_empty_tree(ready.state_schema)
    kept = []
    for number, (watermark, records) in enumerate(
        [(0, ("a", 1, 1)), (6, ("b", 5, 1)), (11, None), (15, None)]
    ):
        one = batch(number, watermark, *([records] if records else []))
        before = MIN_TIMESTAMP_MS if number == 0 else [0, 6, 11, 15][number - 1]
        moment = BatchTime(number, number * 10 - 10, number * 10, before, watermark)
        outcome = process_batch(ready, tree, elements(ready, one.records, "at"), moment)
        tree = tree.with_run(outcome.changed_state, tmp_path / f"run-{number}.arrow")
        kept.append(sorted(alive(tree)))
    assert kept == [["a"], ["a", "b"], ["b"], []]


def alive(tree: trees.StateTree) -> list[str]:
    """The keys that have state."""
    groups = trees.distinct_groups([run.groups.hi for run in tree.runs], [run.groups.lo for run in tree.runs])
    return [str(key) for key in tree.look_up_groups(groups)[0].column("key").to_pylist()]


def endless(call: KeyContext[Seen]) -> KeyUpdate[Seen]:
    """Always set a timer that is due immediately."""
    return KeyUpdate(Seen(), timers=[Timer(call.watermark, "event")])


def none_at_all(call: KeyContext[Seen]) -> Any:
    """Return None."""


def test_a_clock_timer_must_be_declared(tmp_path: Path) -> None:
    stage = stage_of(watch)
    assert isinstance(stage.window, StatefulFunction)
    silent = replace(stage, window=replace(stage.window, clock=False))
    three = batch(0, 0, ("a", 1, 1), ("a", 2, 1), ("a", 3, 1))
    with pytest.raises(StatefulFunctionError, match="watch: it set a processing-time timer"):
        engine(silent, [three], tmp_path)
    assert [is_cut_by_clock(Plan("plan", (SOURCE,), (one,))) for one in (stage, silent)] == [True, False]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (endless, r"endless: key \('a',\) set timers that were due immediately 1000 times in one batch"),
        (none_at_all, r"none_at_all: for key \('a',\) it returned NoneType, not a KeyUpdate"),
    ],
)
def test_a_function_with_an_invalid_result_is_named(tmp_path: Path, function: Any, message: str) -> None:
    with pytest.raises(StatefulFunctionError, match=message):
        engine(stage_of(function), [batch(0, 0, ("a", 1, 1))], tmp_path)
