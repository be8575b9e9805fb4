"""A vectorized function gets the calls of a per-key function, and an invalid result gives a clear error."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.stateful_stages import FORGOTTEN, KEYS, PROPERTY, batch, reference
from tests.pipelines.engine.operators.test_order_windows_against_reference import engine
from tests.pipelines.engine.operators.watch_functions import RETURNS, Tally, watch_all, watch_one

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


def stage_of(
    function: Any,
    key: tuple[str, ...] = ("key",),
    forget_after: int | None = None,
    *,
    vectorized: bool = True,
) -> Stage:
    """A stage with this function."""
    remembering = StatefulFunction(
        function_ref(function), state_type(Tally), RETURNS, forget_after, vectorized, clock=True
    )
    return Stage("watched", ("records",), remembering, (), key=key, sinks=(PaneLog("watched"),))


@PROPERTY
@given(key=KEYS, forget_after=FORGOTTEN, batches=histories())
def test_a_vectorized_call_equals_calls_per_key(
    tmp_path_factory: pytest.TempPathFactory,
    key: tuple[str, ...],
    forget_after: int | None,
    batches: list[InputBatch],
) -> None:
    at_once = engine(stage_of(watch_all, key, forget_after), batches, tmp_path_factory.mktemp("at_once"))
    one = stage_of(watch_one, key, forget_after, vectorized=False)
    assert at_once == engine(one, batches, tmp_path_factory.mktemp("one"))
    assert at_once == reference(stage_of(watch_all, key, forget_after), batches)


def test_a_function_is_called_once_for_all_keys_that_are_due(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def counting(calls: KeyBatchContext) -> KeyBatchUpdate:
        asked.append(sorted(calls.keys.column("key").to_pylist()))
        answers = watch_all(calls)
        return replace(answers, timers=answers.timers.slice(0, 0) if len(asked) > 1 else answers.timers)  # type: ignore[union-attr]

    batches = [
        batch(0, 0, ("a", 1, 1), ("b", 30, 5), ("c", 40, 1)),
        batch(1, 8),
        batch(2, 9),
        batch(3, 9, ("c", 50, 1)),
    ]
    engine(stage_of(counting), batches, tmp_path)
    assert asked == [["a", "b", "c"], ["a", "b", "c"], ["c"]]


def without(name: str) -> Any:
    return lambda calls: KeyBatchUpdate(watch_all(calls).states.drop_columns([name]))


def of_rows(**columns: Any) -> Any:
    return lambda calls: KeyBatchUpdate(watch_all(calls).states, pa.table(columns))


def endless(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Always set a timer that is due immediately."""
    due = pa.table([[0], [calls.watermark], ["event"], [""]], schema=TIMER_SCHEMA)
    return KeyBatchUpdate(watch_all(calls).states, None, due)


def sundial(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Set a timer with an unknown clock."""
    return KeyBatchUpdate(
        watch_all(calls).states, None, pa.table({KEY_INDEX_COLUMN: [0], "at": [1], "clock": ["sun"]})
    )


def by_clock(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Set a clock timer."""
    due = pa.table([[0], [calls.batch_clock], ["processing"], [""]], schema=TIMER_SCHEMA)
    return KeyBatchUpdate(watch_all(calls).states, None, due)


def broken(calls: KeyBatchContext) -> KeyBatchUpdate:
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
        (without("total"), StatefulFunctionError, "its states lack the columns total"),
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
        (of_rows(what=["x"]), StatefulFunctionError, "its rows lack the columns _key"),
        (
            of_rows(_key=[1]),
            StatefulFunctionError,
            "its rows have keys 1 to 1, but it was called for keys 0 to 0",
        ),
        (
            of_rows(_key=[0], sen=[1]),
            StatefulFunctionError,
            "its rows have the unknown columns sen; allowed: _key, _at, what, seen, total",
        ),
        (of_rows(_key=[0], seen=["many"]), StatefulFunctionError, "its rows do not fit the schema"),
        (sundial, StatefulFunctionError, "the clock event or processing"),
        (broken, UserCodeError, "broken raised ZeroDivisionError: of its own"),
    ],
)
def test_a_vectorized_function_with_an_invalid_result_is_named(
    tmp_path: Path, function: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        engine(stage_of(function), [batch(0, 0, ("a", 1, 1))], tmp_path)


@dataclass(frozen=True)
class Deep:
    """A state that fits no columns."""

    marks: dict[str, int]


@dataclass(frozen=True)
class Wide:
    """A state with every column type."""

    number: int
    share: float | None
    name: str
    good: bool
    packed: bytes
    words: list[str]
    times: tuple[int, ...]


def test_the_fields_of_a_state_are_its_columns() -> None:
    kinds = ["BIGINT", "DOUBLE", "STRING", "BOOLEAN", "BINARY", "ARRAY<STRING>", "ARRAY<BIGINT>"]
    assert [column.type for column in state_columns(Wide)] == kinds
    with pytest.raises(DefinitionError, match=r"stateful\.state\.marks: dict.* has no column type"):
        StatefulFunction(function_ref(watch_all), state_type(Deep), RETURNS, vectorized=True)


def test_vectorization_does_not_change_other_fingerprints() -> None:
    plain = StatefulFunction(function_ref(watch_one, "1"), state_type(Tally), (Column("n", "BIGINT"),))
    assert fingerprint(plain) != fingerprint(replace(plain, vectorized=True))
    assert "vectorized" not in part_to_json(plain)


def test_a_clock_timer_must_be_declared(tmp_path: Path) -> None:
    stage = stage_of(by_clock)
    assert isinstance(stage.window, StatefulFunction)
    silent = replace(stage, window=replace(stage.window, clock=False))
    with pytest.raises(StatefulFunctionError, match="by_clock: it set a processing-time timer"):
        engine(silent, [batch(0, 0, ("a", 1, 1))], tmp_path)
