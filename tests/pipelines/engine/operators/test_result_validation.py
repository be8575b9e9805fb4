"""Results of stateful functions are validated against their declaration before the batch is committed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipelines.engine.operators.stateful_stages import make_batch
from tests.pipelines.engine.operators.test_order_windows_against_reference import run_engine

from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import StatefulFunctionError, UserCodeError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.operators.changelog.changes_to_partials import apply_steps
from penstock.engine.operators.row_steps import map_rows
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import ProcessingOrder, StatefulFunction, state_type
from penstock.engine.plan.steps import ArrowStep, RowFunctionStep
from penstock.engine.sinks.pane_log import PaneLog

RETURNS = (
    Column("n", "BIGINT"),
    Column("share", "DOUBLE"),
    Column("word", "STRING"),
    Column("words", "ARRAY<STRING>"),
)


@dataclass(frozen=True)
class RecordCount:
    """The state of a key."""

    n: int = 0


FunctionResult = Callable[[KeyContext[Any]], Any]

INVALID_RESULTS: dict[str, tuple[FunctionResult, str]] = {
    "a state of another type": (lambda _: KeyUpdate(RecordCount(1.5)), r"RecordCount that can be stored .*\$\.n"),
    "a state without a value": (lambda _: KeyUpdate(RecordCount(None)), r"RecordCount that can be stored .*\$\.n"),
    "a numpy number as state": (lambda _: KeyUpdate(RecordCount(np.int64(1))), "can be stored .*numpy"),
    "a state that is too large": (lambda _: KeyUpdate(RecordCount(2**70)), "can be stored"),
    "a timer at a fraction of a millisecond": (
        lambda _: KeyUpdate(RecordCount(), timers=[Timer(30.5)]),
        r"Timer\(at=30\.5",
    ),
    "a timer of an unknown clock": (
        lambda _: KeyUpdate(RecordCount(), timers=[Timer(30, "evnt")]),
        "clock must be event or",
    ),
    "a number for a timer": (
        lambda _: KeyUpdate(RecordCount(), timers=[30]),
        "its timers contain int, not only Timer",
    ),
    "a generator of timers": (
        lambda _: KeyUpdate(RecordCount(), timers=(Timer(at) for at in (30, 40))),
        "timers are a generator, not a list",
    ),
    "a generator of rows": (
        lambda call: KeyUpdate(RecordCount(), (OutputRow({"n": read.time}) for read in call.records)),
        "rows are a generator, not a list",
    ),
    "a dict for a row": (lambda _: KeyUpdate(RecordCount(), [{"n": 1}]), "not OutputRow with fields"),
    "a column that is not declared": (
        lambda _: KeyUpdate(RecordCount(), [OutputRow({"m": 1})]),
        "rows have the undeclared fields m; declared: n, share, word, words",
    ),
    "a fraction for a whole number": (
        lambda _: KeyUpdate(RecordCount(), [OutputRow({"n": 1.5})]),
        "column n .*1.5 is not a whole",
    ),
    "a number for a text": (lambda _: KeyUpdate(RecordCount(), [OutputRow({"word": 1})]), "the column word"),
    "a text for a list": (
        lambda _: KeyUpdate(RecordCount(), [OutputRow({"words": "ab"})]),
        "column words .*'ab' is not a list",
    ),
    "a number beyond its column": (lambda _: KeyUpdate(RecordCount(), [OutputRow({"n": 2**70})]), "the column n"),
    "an event time at a fraction of a millisecond": (
        lambda _: KeyUpdate(RecordCount(), [OutputRow({}, 1.5)]),
        "event time 1.5",
    ),
    "an event time out of range": (
        lambda _: KeyUpdate(RecordCount(), [OutputRow({}, 2**63)]),
        "event time 9223372036854775808",
    ),
}  # fmt: skip


def run_function(function: FunctionResult, folder: Path, order: ProcessingOrder = "arrival") -> list[Any]:
    """Run three batches: two with records of a key, and one with its timers."""
    window = StatefulFunction(function_ref(function, "1"), state_type(RecordCount), RETURNS, order=order)
    stage = Stage("stage", ("records",), window, (), key=("key",), sinks=(PaneLog("stage"),))
    batches = [make_batch(0, 5, ("a", 1, 1)), make_batch(1, 10, ("a", 7, 1)), make_batch(2, 50)]
    return run_engine(stage, batches, folder)


@pytest.mark.parametrize("order", ["arrival", "event_time"])
@pytest.mark.parametrize(("function", "message"), INVALID_RESULTS.values(), ids=INVALID_RESULTS)
def test_an_invalid_result_raises_a_clear_error(
    function: FunctionResult, message: str, order: ProcessingOrder, tmp_path: Path
) -> None:
    with pytest.raises(StatefulFunctionError, match=message):
        run_function(function, tmp_path, order)


def test_an_unreadable_state_fails_the_batch_that_returns_it(tmp_path: Path) -> None:
    calls: list[KeyContext[Any]] = []

    def return_fraction(call: KeyContext[Any]) -> KeyUpdate[Any]:
        calls.append(call)
        return KeyUpdate(RecordCount(0.5))

    with pytest.raises(StatefulFunctionError):
        run_function(return_fraction, tmp_path)
    assert len(calls) == 1


def test_integers_may_be_floats_and_columns_may_be_omitted(tmp_path: Path) -> None:
    rows = [OutputRow({"n": 2.0, "share": 1}, np.int64(3)), OutputRow({"words": ("a", None), "word": None})]
    first, *_ = run_function(lambda _: KeyUpdate(RecordCount(), rows), tmp_path)
    assert [row[1:6] for row in first] == [(2, 1.0, None, None, 3), (None, None, None, ("a", None), 1)]


@pytest.mark.parametrize("value", [1.5, float("nan"), 2**70, "x"])
def test_a_row_step_returns_its_declared_types(value: object) -> None:
    step = RowFunctionStep(function_ref(lambda _: {"n": value}, "1"), (Column("n", "BIGINT"),))
    with pytest.raises(UserCodeError):
        map_rows(step, pa.table({"a": [1]}))


def test_a_failing_arrow_step_over_panes_is_named() -> None:
    step = ArrowStep(function_ref(read_missing_column, "1"))
    with pytest.raises(UserCodeError, match=r"read_missing_column \(.*py:\d+\): KeyError: .*celsius"):
        apply_steps([step], pa.table({"a": [1]}))


def read_missing_column(table: pa.Table) -> pa.Table:
    """Read a column that does not exist."""
    return table.filter(table.column("celsius"))
