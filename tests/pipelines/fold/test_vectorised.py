"""A vectorised function is asked what one is that is called key by key, and what it cannot answer is named."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.pipelines.fold.functions import FORGOTTEN, KEYS, PROPERTY, batch, reference
from tests.pipelines.fold.strategies import histories
from tests.pipelines.fold.test_order_windows_against_reference import engine
from tests.pipelines.fold.watchers import RETURNS, Tally, watch_all, watch_one

from penstock.pipelines.errors import DefinitionError, RememberingError, UserCodeError
from penstock.pipelines.plan import Column, PaneLog, Remembering, Stage, fingerprint, opaque, state_type
from penstock.pipelines.plan.codec import part_to_json
from penstock.pipelines.plan.remembering import memory_columns
from penstock.pipelines.reference import Batch
from penstock.pipelines.vectorised import KEY, TIMERS, Answers, Calls


def stage_of(
    function: Any,
    key: tuple[str, ...] = ("key",),
    forget_after: int | None = None,
    *,
    vectorised: bool = True,
) -> Stage:
    """A stage with this function in the place of a window."""
    remembering = Remembering(
        opaque(function), state_type(Tally), RETURNS, forget_after, vectorised, clock=True
    )
    return Stage("watched", ("records",), remembering, (), key=key, sinks=(PaneLog("watched"),))


@PROPERTY
@given(key=KEYS, forget_after=FORGOTTEN, batches=histories())
def test_all_keys_at_once_are_told_what_each_would_be_alone(
    tmp_path_factory: pytest.TempPathFactory,
    key: tuple[str, ...],
    forget_after: int | None,
    batches: list[Batch],
) -> None:
    at_once = engine(stage_of(watch_all, key, forget_after), batches, tmp_path_factory.mktemp("at_once"))
    one = stage_of(watch_one, key, forget_after, vectorised=False)
    assert at_once == engine(one, batches, tmp_path_factory.mktemp("one"))
    assert at_once == reference(stage_of(watch_all, key, forget_after), batches)


def test_a_function_is_called_once_for_all_keys_that_have_a_cause_and_for_no_other(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def counting(calls: Calls) -> Answers:
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
    return lambda calls: Answers(watch_all(calls).states.drop_columns([name]))


def of_rows(**columns: Any) -> Any:
    return lambda calls: Answers(watch_all(calls).states, pa.table(columns))


def endless(calls: Calls) -> Answers:
    """Set a timer that is due at once, always."""
    due = pa.table([[0], [calls.watermark], ["event"], [""]], schema=TIMERS)
    return Answers(watch_all(calls).states, None, due)


def sundial(calls: Calls) -> Answers:
    """Set a timer by a clock that nobody has."""
    return Answers(watch_all(calls).states, None, pa.table({KEY: [0], "at": [1], "clock": ["sun"]}))


def by_clock(calls: Calls) -> Answers:
    """Set a timer of the clock."""
    due = pa.table([[0], [calls.clock], ["processing"], [""]], schema=TIMERS)
    return Answers(watch_all(calls).states, None, due)


def broken(calls: Calls) -> Answers:
    raise ZeroDivisionError("of its own")


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (
            endless,
            RememberingError,
            r"endless: \('a',\) set timers that were due at once 1000 times in one batch",
        ),
        (lambda _: None, RememberingError, "it gave NoneType, no Answers"),
        (
            lambda calls: Answers(calls.states.slice(1)),
            RememberingError,
            "it was asked about 1 keys, and its states are 0",
        ),
        (
            lambda calls: Answers(calls.states.to_pylist()),
            RememberingError,
            r"its states are list, no pyarrow\.Table",
        ),
        (without("total"), RememberingError, "its states lack total"),
        (
            lambda calls: Answers(calls.states, [{"_key": 0}]),
            RememberingError,
            r"its rows are list, no pyarrow\.Table",
        ),
        (
            lambda calls: Answers(calls.states.append_column("total", calls.states.column("total"))),
            RememberingError,
            "its states have total twice",
        ),
        (of_rows(what=["x"]), RememberingError, "its rows lack _key"),
        (of_rows(_key=[1]), RememberingError, "its rows are of keys 1 to 1, and it was asked about 0 to 0"),
        (
            of_rows(_key=[0], sen=[1]),
            RememberingError,
            "its rows have sen; known are _key, _at, what, seen, total",
        ),
        (of_rows(_key=[0], seen=["many"]), RememberingError, "its rows do not fit"),
        (sundial, RememberingError, "the clock event or processing"),
        (broken, UserCodeError, "broken raised ZeroDivisionError: of its own"),
    ],
)
def test_a_vectorised_function_that_answers_what_it_cannot_is_named(
    tmp_path: Path, function: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        engine(stage_of(function), [batch(0, 0, ("a", 1, 1))], tmp_path)


@dataclass(frozen=True)
class Deep:
    """A state that fits no columns."""

    marks: dict[str, int]


@dataclass(frozen=True)
class Wide:
    """A state of every type that a column has."""

    number: int
    share: float | None
    name: str
    good: bool
    packed: bytes
    words: list[str]
    times: tuple[int, ...]


def test_the_fields_of_a_state_are_its_columns() -> None:
    kinds = ["BIGINT", "DOUBLE", "STRING", "BOOLEAN", "BINARY", "ARRAY<STRING>", "ARRAY<BIGINT>"]
    assert [column.type for column in memory_columns(Wide)] == kinds
    with pytest.raises(DefinitionError, match=r"remember\.state\.marks: dict.* fits no column"):
        Remembering(opaque(watch_all), state_type(Deep), RETURNS, vectorised=True)


def test_a_function_that_is_not_vectorised_keeps_the_fingerprint_that_it_had() -> None:
    plain = Remembering(opaque(watch_one, "1"), state_type(Tally), (Column("n", "BIGINT"),))
    assert fingerprint(plain) != fingerprint(replace(plain, vectorised=True))
    assert "vectorised" not in part_to_json(plain)


def test_a_timer_of_the_clock_is_declared_or_refused(tmp_path: Path) -> None:
    stage = stage_of(by_clock)
    assert isinstance(stage.window, Remembering)
    silent = replace(stage, window=replace(stage.window, clock=False))
    with pytest.raises(RememberingError, match="by_clock: it set a timer of the clock"):
        engine(silent, [batch(0, 0, ("a", 1, 1))], tmp_path)
