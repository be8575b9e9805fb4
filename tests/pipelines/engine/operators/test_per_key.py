"""A stateful function is called only for keys with records or due timers, and expired state is gone."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.engine.operators.duckdb_partials import list_elements
from tests.pipelines.engine.operators.stateful_stages import make_batch
from tests.pipelines.engine.operators.test_order_windows_against_reference import run_engine
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
class RecordHistory:
    """The state of a key."""

    records: int = 0
    total: int = 0
    words: tuple[str, ...] = ()
    marks: dict[str, int] = field(default_factory=dict)
    times: dict[int, tuple[str, ...]] = field(default_factory=dict)


RETURNS = (Column("what", "STRING"), Column("seen", "BIGINT"), Column("total", "BIGINT"))


def watch_records(call: KeyContext[RecordHistory]) -> KeyUpdate[RecordHistory]:
    """Report great values, silence after five of event time, and a clock timer after every third record."""
    history, rows = call.state or RecordHistory(), []
    timers = [timer for timer in call.pending_timers if timer.name != "quiet" or not call.records]
    for read in call.records:
        value, word = read.fields["value"] or 0, read.fields["word"] or ""
        history = replace(
            history, records=history.records + 1, total=history.total + value, words=(*history.words, word)[-3:],
            marks={**history.marks, word: read.time}, times={**history.times, read.time: (word,)},
        )  # fmt: skip
        if value > 3:
            rows.append(OutputRow(make_row("great", history), at=read.time))
        if history.records % 3 == 0:
            timers.append(Timer(call.batch_clock + 4, "processing", f"third{history.records}"))
    if call.records:
        timers.append(Timer(call.records[-1].time + 5, "event", "quiet"))
    rows += [
        OutputRow(make_row(f"{timer.name} {','.join(history.words)}", history)) for timer in call.due_timers
    ]
    timers += [Timer(timer.at + 3, "event", "again") for timer in call.due_timers if timer.name == "quiet"]
    timers += [replace(timer, at=timer.at + 5) for timer in call.due_timers if timer.name == "again"]
    new_state = None if history.total < -1 else history
    return KeyUpdate(new_state, rows, timers)


def make_row(what: str, history: RecordHistory) -> dict[str, Any]:
    """A row of the result."""
    return {"what": what, "seen": history.records, "total": history.total}


def make_stage(function: Any, key: tuple[str, ...] = ("key",), forget_after: int | None = None) -> Stage:
    """A stage with this function."""
    window = StatefulFunction(
        function_ref(function), state_type(RecordHistory), RETURNS, forget_after, clock=True
    )
    return Stage("watched", ("records",), window, (), key=key, sinks=(PaneLog("watched"),))


def test_a_key_is_called_only_for_records_or_due_timers(tmp_path: Path) -> None:
    calls_by_key: Counter[Any] = Counter()

    def count_calls(call: KeyContext[RecordHistory]) -> KeyUpdate[RecordHistory]:
        calls_by_key[call.key] += 1
        update = watch_records(call)
        return replace(update, timers=[timer for timer in update.timers or () if timer.name != "again"])

    rows_by_batch = run_engine(
        make_stage(count_calls),
        [
            make_batch(0, 0, ("a", 1, 1), ("b", 2, 5)),
            make_batch(1, 5, ("b", 3, 1)),
            make_batch(2, 6),
            make_batch(3, 20),
            make_batch(4, 21),
        ],
        tmp_path,
    )
    assert calls_by_key == {("a",): 2, ("b",): 3}
    assert [[row[1:4] for row in rows] for rows in rows_by_batch] == [
        [("great", 1, 5)], [], [("quiet ", 1, 1)], [("quiet ,", 2, 6)], []
    ]  # fmt: skip


def test_a_silent_key_expires(tmp_path: Path) -> None:
    compiled_stage = compile_stage(
        make_stage(watch_records, forget_after=10), {each.name: each.type for each in FIELDS}
    )
    tree = trees.create_empty_tree(compiled_stage.state_schema)
    keys_by_batch = []
    for number, (watermark, records) in enumerate(
        [(0, ("a", 1, 1)), (6, ("b", 5, 1)), (11, None), (15, None)]
    ):
        batch = make_batch(number, watermark, *([records] if records else []))
        watermark_before = MIN_TIMESTAMP_MS if number == 0 else [0, 6, 11, 15][number - 1]
        batch_time = BatchTime(number, number * 10 - 10, number * 10, watermark_before, watermark)
        outcome = process_batch(
            compiled_stage, tree, list_elements(compiled_stage, batch.records, "at"), batch_time
        )
        tree = tree.with_run(outcome.changed_state, tmp_path / f"run-{number}.arrow")
        keys_by_batch.append(sorted(list_stored_keys(tree)))
    assert keys_by_batch == [["a"], ["a", "b"], ["b"], []]


def list_stored_keys(tree: trees.StateTree) -> list[str]:
    """The keys that have state."""
    groups = trees.distinct_groups([run.groups.hi for run in tree.runs], [run.groups.lo for run in tree.runs])
    return [str(key) for key in tree.look_up_groups(groups)[0].column("key").to_pylist()]


def endless(call: KeyContext[RecordHistory]) -> KeyUpdate[RecordHistory]:
    """Always set a timer that is due immediately."""
    return KeyUpdate(RecordHistory(), timers=[Timer(call.watermark, "event")])


def return_none(call: KeyContext[RecordHistory]) -> Any:
    """Return None."""


def test_a_clock_timer_must_be_declared(tmp_path: Path) -> None:
    stage = make_stage(watch_records)
    assert isinstance(stage.window, StatefulFunction)
    undeclared = replace(stage, window=replace(stage.window, clock=False))
    three_records = make_batch(0, 0, ("a", 1, 1), ("a", 2, 1), ("a", 3, 1))
    with pytest.raises(StatefulFunctionError, match="watch_records: it set a processing-time timer"):
        run_engine(undeclared, [three_records], tmp_path)
    assert [
        is_cut_by_clock(Plan("plan", (SOURCE,), (stage_of_plan,))) for stage_of_plan in (stage, undeclared)
    ] == [True, False]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (endless, r"endless: key \('a',\) set timers that were due immediately 1000 times in one batch"),
        (return_none, r"return_none: for key \('a',\) it returned NoneType, not a KeyUpdate"),
    ],
)
def test_a_function_with_an_invalid_result_is_named(tmp_path: Path, function: Any, message: str) -> None:
    with pytest.raises(StatefulFunctionError, match=message):
        run_engine(make_stage(function), [make_batch(0, 0, ("a", 1, 1))], tmp_path)
