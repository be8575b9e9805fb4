"""What a function with a memory answers is held to what its pipeline declares, before the batch is decided."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipelines.fold.functions import batch
from tests.pipelines.fold.test_order_windows_against_reference import engine

from penstock.pipelines.errors import RememberingError, UserCodeError
from penstock.pipelines.fold.lifting import stepped
from penstock.pipelines.fold.rowwise import mapped
from penstock.pipelines.plan import (
    Column,
    OverArrow,
    PaneLog,
    PerRow,
    Remembering,
    Stage,
    opaque,
    state_type,
)
from penstock.pipelines.plan.remembering import TellingOrder
from penstock.pipelines.remembering import Answer, Call, Row, Timer

RETURNS = (
    Column("n", "BIGINT"),
    Column("share", "DOUBLE"),
    Column("word", "STRING"),
    Column("words", "ARRAY<STRING>"),
)


@dataclass(frozen=True)
class Seen:
    """What is remembered."""

    n: int = 0


Found = Callable[[Call[Any]], Any]

WRONG: dict[str, tuple[Found, str]] = {
    "a state of another type": (lambda _: Answer(Seen(1.5)), r"Seen that can be kept .*\$\.n"),
    "a state without a value": (lambda _: Answer(Seen(None)), r"Seen that can be kept .*\$\.n"),
    "a number of numpy's as state": (lambda _: Answer(Seen(np.int64(1))), "can be kept .*numpy"),
    "a state that is too great": (lambda _: Answer(Seen(2**70)), "can be kept"),
    "a timer between milliseconds": (lambda _: Answer(Seen(), timers=[Timer(30.5)]), r"Timer\(at=30\.5"),
    "a timer of no clock": (lambda _: Answer(Seen(), timers=[Timer(30, "evnt")]), "clock is event or"),
    "a number for a timer": (lambda _: Answer(Seen(), timers=[30]), "int among its timers, no Timer"),
    "timers that are gone when looked at": (
        lambda _: Answer(Seen(), timers=(Timer(at) for at in (30, 40))),
        "timers are a generator, no list",
    ),
    "rows that are gone when looked at": (
        lambda call: Answer(Seen(), (Row({"n": read.time}) for read in call.records)),
        "rows are a generator, no list",
    ),
    "a dict for a row": (lambda _: Answer(Seen(), [{"n": 1}]), "no Row with fields"),
    "a column that is not declared": (
        lambda _: Answer(Seen(), [Row({"m": 1})]),
        "rows have m; declared is n, share, word, words",
    ),
    "a fraction for a whole number": (lambda _: Answer(Seen(), [Row({"n": 1.5})]), "column n .*1.5 is no whole"),
    "a number for a text": (lambda _: Answer(Seen(), [Row({"word": 1})]), "the column word"),
    "a text for a list": (lambda _: Answer(Seen(), [Row({"words": "ab"})]), "column words .*'ab' is no list"),
    "a number beyond its column": (lambda _: Answer(Seen(), [Row({"n": 2**70})]), "the column n"),
    "an event time between milliseconds": (lambda _: Answer(Seen(), [Row({}, 1.5)]), "event time 1.5"),
    "an event time beyond all": (lambda _: Answer(Seen(), [Row({}, 2**63)]), "event time 9223372036854775808"),
}  # fmt: skip


def told(answer: Found, folder: Path, order: TellingOrder = "arrival") -> list[Any]:
    """What three batches say by a function that answers so: two with records of a key, and its timers."""
    window = Remembering(opaque(answer, "1"), state_type(Seen), RETURNS, order=order)
    stage = Stage("stage", ("records",), window, (), key=("key",), sinks=(PaneLog("stage"),))
    batches = [batch(0, 5, ("a", 1, 1)), batch(1, 10, ("a", 7, 1)), batch(2, 50)]
    return engine(stage, batches, folder)


@pytest.mark.parametrize("order", ["arrival", "event_time"])
@pytest.mark.parametrize(("answer", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_kept_or_shown_is_refused_in_a_sentence(
    answer: Found, says: str, order: TellingOrder, tmp_path: Path
) -> None:
    with pytest.raises(RememberingError, match=says):
        told(answer, tmp_path, order)


def test_a_state_that_could_not_be_read_again_is_refused_in_the_batch_that_brings_it(tmp_path: Path) -> None:
    calls: list[Call[Any]] = []

    def half(call: Call[Any]) -> Answer[Any]:
        calls.append(call)
        return Answer(Seen(0.5))

    with pytest.raises(RememberingError):
        told(half, tmp_path)
    assert len(calls) == 1


def test_whole_numbers_may_come_as_floating_ones_and_columns_may_be_left_out(tmp_path: Path) -> None:
    rows = [Row({"n": 2.0, "share": 1}, np.int64(3)), Row({"words": ("a", None), "word": None})]
    first, *_ = told(lambda _: Answer(Seen(), rows), tmp_path)
    assert [row[1:6] for row in first] == [(2, 1.0, None, None, 3), (None, None, None, ("a", None), 1)]


@pytest.mark.parametrize("wrong", [1.5, float("nan"), 2**70, "x"])
def test_a_step_over_single_rows_is_held_to_its_types_too(wrong: object) -> None:
    step = PerRow(opaque(lambda _: {"n": wrong}, "1"), (Column("n", "BIGINT"),))
    with pytest.raises(UserCodeError):
        mapped(step, pa.table({"a": [1]}))


def test_a_step_over_arrow_that_breaks_over_panes_is_named() -> None:
    step = OverArrow(opaque(cold, "1"))
    with pytest.raises(UserCodeError, match=r"cold raised KeyError: .*celsius"):
        stepped([step], pa.table({"a": [1]}))


def cold(table: pa.Table) -> pa.Table:
    """Ask for a column that is not there."""
    return table.filter(table.column("celsius"))
