"""A vectorized function gets the calls of a per-key function, and an invalid result gives a clear error."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.stateful_stages import (
    KEYS,
    TIMES_TO_LIVE,
    make_batch,
    property_settings,
    run_reference,
)
from tests.pipelines.engine.operators.test_order_windows_against_reference import run_engine
from tests.pipelines.engine.operators.watch_functions import (
    RETURNS,
    RecordTally,
    watch_per_key,
    watch_vectorized,
)

from penstock.conformance.reference import InputBatch
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError, StatefulFunctionError, UserCodeError
from penstock.engine.functions.vectorized import (
    KEY_INDEX_COLUMN,
    TIMER_SCHEMA,
    KeyBatchContext,
    KeyBatchUpdate,
)
from penstock.engine.plan.codec import fingerprint, part_to_json
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_columns, state_type
from penstock.engine.sinks.pane_log import PaneLog


def make_stage(
    function: Any,
    key: tuple[str, ...] = ("key",),
    forget_after: int | None = None,
    *,
    vectorized: bool = True,
) -> Stage:
    """A stage with this function."""
    window = StatefulFunction(
        function_ref(function), state_type(RecordTally), RETURNS, forget_after, vectorized, clock=True
    )
    return Stage("watched", ("records",), window, (), key=key, sinks=(PaneLog("watched"),))


@property_settings
@given(key=KEYS, forget_after=TIMES_TO_LIVE, batches=histories())
def test_a_vectorized_call_equals_calls_per_key(
    tmp_path_factory: pytest.TempPathFactory,
    key: tuple[str, ...],
    forget_after: int | None,
    batches: list[InputBatch],
) -> None:
    vectorized_rows = run_engine(
        make_stage(watch_vectorized, key, forget_after), batches, tmp_path_factory.mktemp("vectorized")
    )
    stage = make_stage(watch_per_key, key, forget_after, vectorized=False)
    assert vectorized_rows == run_engine(stage, batches, tmp_path_factory.mktemp("one"))
    assert vectorized_rows == run_reference(make_stage(watch_vectorized, key, forget_after), batches)


def test_a_function_is_called_once_for_all_keys_that_are_due(tmp_path: Path) -> None:
    keys_by_call: list[list[str]] = []

    def count_calls(calls: KeyBatchContext) -> KeyBatchUpdate:
        keys_by_call.append(sorted(calls.keys.column("key").to_pylist()))
        update = watch_vectorized(calls)
        return replace(update, timers=update.timers.slice(0, 0) if len(keys_by_call) > 1 else update.timers)  # type: ignore[union-attr]

    batches = [
        make_batch(0, 0, ("a", 1, 1), ("b", 30, 5), ("c", 40, 1)),
        make_batch(1, 8),
        make_batch(2, 9),
        make_batch(3, 9, ("c", 50, 1)),
    ]
    run_engine(make_stage(count_calls), batches, tmp_path)
    assert keys_by_call == [["a", "b", "c"], ["a", "b", "c"], ["c"]]


def drop_state_column(name: str) -> Any:
    return lambda calls: KeyBatchUpdate(watch_vectorized(calls).states.drop_columns([name]))


def return_rows(**columns: Any) -> Any:
    return lambda calls: KeyBatchUpdate(watch_vectorized(calls).states, pa.table(columns))


def endless(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Always set a timer that is due immediately."""
    due = pa.table([[0], [calls.watermark], ["event"], [""]], schema=TIMER_SCHEMA)
    return KeyBatchUpdate(watch_vectorized(calls).states, None, due)


def set_unknown_clock(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Set a timer with an unknown clock."""
    return KeyBatchUpdate(
        watch_vectorized(calls).states, None, pa.table({KEY_INDEX_COLUMN: [0], "at": [1], "clock": ["sun"]})
    )


def set_clock_timer(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Set a clock timer."""
    due = pa.table([[0], [calls.batch_clock], ["processing"], [""]], schema=TIMER_SCHEMA)
    return KeyBatchUpdate(watch_vectorized(calls).states, None, due)


def raise_error(calls: KeyBatchContext) -> KeyBatchUpdate:
    raise ZeroDivisionError("of its own")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            endless,
            StatefulFunctionError,
            r"endless: key \('a',\) set timers that were due immediately 1000 times in one batch",
        ),
        (lambda _: None, StatefulFunctionError, r"it returned NoneType, not a .*\.KeyBatchUpdate"),
        (
            lambda calls: KeyBatchUpdate(calls.states.slice(1)),
            StatefulFunctionError,
            "it was called for 1 keys but returned 0 states",
        ),
        (
            lambda calls: KeyBatchUpdate(calls.states.to_pylist()),
            StatefulFunctionError,
            r"its states are list, not a pyarrow\.Table",
        ),
        (drop_state_column("total"), StatefulFunctionError, "its states lack the columns total"),
        (
            lambda calls: KeyBatchUpdate(calls.states, [{"_key": 0}]),
            StatefulFunctionError,
            r"its rows are list, not a pyarrow\.Table",
        ),
        (
            lambda calls: KeyBatchUpdate(calls.states.append_column("total", calls.states.column("total"))),
            StatefulFunctionError,
            "its states have the column total twice",
        ),
        (return_rows(what=["x"]), StatefulFunctionError, "its rows lack the columns _key"),
        (
            return_rows(_key=[1]),
            StatefulFunctionError,
            "its rows have keys 1 to 1, but it was called for keys 0 to 0",
        ),
        (
            return_rows(_key=[0], sen=[1]),
            StatefulFunctionError,
            "its rows have the unknown columns sen; allowed: _key, _at, what, seen, total",
        ),
        (return_rows(_key=[0], seen=["many"]), StatefulFunctionError, "its rows do not fit the schema"),
        (set_unknown_clock, StatefulFunctionError, "the clock event or processing"),
        (raise_error, UserCodeError, r"raise_error \(.*py:\d+\): ZeroDivisionError: of its own"),
    ],
)
def test_a_vectorized_function_with_an_invalid_result_is_named(
    tmp_path: Path, function: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run_engine(make_stage(function), [make_batch(0, 0, ("a", 1, 1))], tmp_path)


@dataclass(frozen=True)
class NestedState:
    """A state that fits no columns."""

    counts: dict[str, int]


@dataclass(frozen=True)
class StateOfEveryType:
    """A state with every column type."""

    number: int
    share: float | None
    name: str
    good: bool
    packed: bytes
    words: list[str]
    times: tuple[int, ...]


def test_the_fields_of_a_state_are_its_columns() -> None:
    column_types = ["BIGINT", "DOUBLE", "STRING", "BOOLEAN", "BINARY", "ARRAY<STRING>", "ARRAY<BIGINT>"]
    assert [column.type for column in state_columns(StateOfEveryType)] == column_types
    with pytest.raises(DefinitionError, match=r"stateful\.state\.counts: dict.* has no column type"):
        StatefulFunction(function_ref(watch_vectorized), state_type(NestedState), RETURNS, vectorized=True)


def test_vectorization_does_not_change_other_fingerprints() -> None:
    per_key = StatefulFunction(
        function_ref(watch_per_key, "1"), state_type(RecordTally), (Column("n", "BIGINT"),)
    )
    assert fingerprint(per_key) != fingerprint(replace(per_key, vectorized=True))
    assert "vectorized" not in part_to_json(per_key)


def test_a_clock_timer_must_be_declared(tmp_path: Path) -> None:
    stage = make_stage(set_clock_timer)
    assert isinstance(stage.window, StatefulFunction)
    undeclared = replace(stage, window=replace(stage.window, clock=False))
    with pytest.raises(StatefulFunctionError, match="set_clock_timer: it set a processing-time timer"):
        run_engine(undeclared, [make_batch(0, 0, ("a", 1, 1))], tmp_path)
