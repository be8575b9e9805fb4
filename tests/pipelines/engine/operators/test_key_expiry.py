"""A key expires at one event time, however its records are split into batches, live as in a bounded run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.stateful_stages import batch, reference
from tests.pipelines.engine.operators.test_order_windows_against_reference import engine

from penstock.conformance.reference import InputBatch
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.functions.vectorized import (
    KEY_INDEX_COLUMN,
    ROW_TIME_COLUMN,
    KeyBatchContext,
    KeyBatchUpdate,
)
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.sinks.pane_log import PaneLog

RETURNS = (Column("number", "BIGINT"),)


@dataclass(frozen=True)
class Counted:
    """The number of records since the key expired."""

    number: int = 0


def count_one(call: KeyContext[Counted]) -> KeyUpdate[Counted]:
    """Number the records of a key."""
    before = (call.state or Counted()).number
    rows = [
        OutputRow({"number": number}, read.time) for number, read in enumerate(call.records, start=before + 1)
    ]
    return KeyUpdate(Counted(before + len(rows)), rows)


def count_all(calls: KeyBatchContext) -> KeyBatchUpdate:
    """The same, vectorized."""
    key = calls.records.column(KEY_INDEX_COLUMN).to_numpy()
    before = calls.states.column("number").fill_null(0).to_numpy()
    number = before[key] + np.arange(len(key)) - np.searchsorted(key, np.arange(len(before)))[key] + 1
    after = before + np.bincount(key, minlength=len(before))
    rows = pa.table({KEY_INDEX_COLUMN: key, ROW_TIME_COLUMN: calls.records.column("_time"), "number": number})
    return KeyBatchUpdate(pa.table({"number": after}), rows)


def stage_of(function: Any, forget_after: int, *, vectorized: bool) -> Stage:
    """A stage that numbers records."""
    counting = StatefulFunction(
        function_ref(function), state_type(Counted), RETURNS, forget_after, vectorized
    )
    return Stage("counted", ("records",), counting, (), key=("key",), sinks=(PaneLog("counted"),))


def rows_of(batches: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Key, number and event time of all rows."""
    return sorted((row[:3] for rows in batches for row in rows), key=repr)


def as_one(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """A bounded run over the same records."""
    return [InputBatch(0, 0, tuple(record for one in batches for record in one.records), is_last=True)]


WAYS = pytest.mark.parametrize(
    ("function", "vectorized"), [(count_one, False), (count_all, True)], ids=["plain", "vectorized"]
)


@WAYS
def test_a_record_after_the_expiry_finds_no_state(tmp_path: Path, function: Any, vectorized: bool) -> None:
    stage = stage_of(function, 10, vectorized=vectorized)
    live = [batch(0, 0, ("a", 1, 1), ("b", 60, 1)), batch(1, 50), batch(2, 90, ("a", 100, 1), ("a", 95, 1))]
    ran = rows_of(engine(stage, live, tmp_path))
    assert ran == [("a", 1, 1), ("a", 1, 100), ("a", 2, 95), ("b", 1, 60)]
    assert rows_of(reference(stage, as_one(live))) == ran


@settings(max_examples=scale_examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    way=st.sampled_from([(count_one, False), (count_all, True)]),
    after=st.integers(1, 30),
    batches=histories(),
    data=st.data(),
)
def test_keys_expire_alike_in_live_and_bounded_runs(
    tmp_path_factory: pytest.TempPathFactory,
    way: tuple[Any, bool],
    after: int,
    batches: list[InputBatch],
    data: st.DataObject,
) -> None:
    stage = stage_of(way[0], after, vectorized=way[1])
    live = [*in_time(batches), InputBatch(99, 99, is_last=True)]
    at = data.draw(st.integers(0, len(live)))
    cut = [*(replace(one, watermark=0, is_last=False) for one in as_one(live[:at])), *as_one(live[at:])]
    cut = [replace(one, id=number, clock=number) for number, one in enumerate(cut)]
    ran = rows_of(engine(stage, live, tmp_path_factory.mktemp("live")))
    assert ran == rows_of(reference(stage, live)) == rows_of(reference(stage, as_one(live)))
    assert ran == rows_of(engine(stage, cut, tmp_path_factory.mktemp("cut")))


def in_time(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same records in one partition, each moved beyond the watermark before it."""
    before, offset, moved = 0, count(), []
    for one in batches:
        records = [
            replace(r, partition=0, offset=next(offset), fields={**r.fields, "at": r.fields["at"] + before})
            for r in one.records
        ]
        moved.append(replace(one, records=tuple(records), is_last=False))
        before = int(one.watermark or before)
    return moved


def test_a_timer_fires_before_its_key_expires_or_never(tmp_path: Path) -> None:
    def timed(call: KeyContext[Counted]) -> KeyUpdate[Counted]:
        set_ = [Timer(call.records[-1].time + wait) for wait in (4, 12)] if call.records else None
        rows = [OutputRow({"number": timer.at}, timer.at) for timer in call.due_timers]
        return KeyUpdate(Counted(len(call.pending_timers)), rows, set_)

    stage = stage_of(timed, 10, vectorized=False)
    at_once = [batch(0, 100, ("a", 1, 1), ("a", 50, 1))]
    slowly = [batch(0, 0, ("a", 1, 1)), *(batch(number, number * 3) for number in range(1, 6))]
    slowly = [*slowly, batch(6, 40, ("a", 50, 1)), batch(7, 100)]
    for live in (at_once, slowly):
        folder = tmp_path / str(len(live))
        folder.mkdir()
        assert rows_of(engine(stage, live, folder)) == [("a", 5, 5), ("a", 54, 54)]
        assert rows_of(reference(stage, live)) == [("a", 5, 5), ("a", 54, 54)]
