"""A key expires at the same event time for any batches, in live and bounded runs."""

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
from tests.pipelines.engine.operators.stateful_stages import make_batch, run_reference
from tests.pipelines.engine.operators.test_order_windows_against_reference import run_engine

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
class RecordCount:
    """The number of records since the key expired."""

    number: int = 0


def count_per_key(call: KeyContext[RecordCount]) -> KeyUpdate[RecordCount]:
    """Number the records of a key."""
    count_before = (call.state or RecordCount()).number
    rows = [
        OutputRow({"number": number}, read.time)
        for number, read in enumerate(call.records, start=count_before + 1)
    ]
    return KeyUpdate(RecordCount(count_before + len(rows)), rows)


def count_vectorized(calls: KeyBatchContext) -> KeyBatchUpdate:
    """The same, vectorized."""
    key = calls.records.column(KEY_INDEX_COLUMN).to_numpy()
    count_before = calls.states.column("number").fill_null(0).to_numpy()
    number = (
        count_before[key] + np.arange(len(key)) - np.searchsorted(key, np.arange(len(count_before)))[key] + 1
    )
    count_after = count_before + np.bincount(key, minlength=len(count_before))
    rows = pa.table({KEY_INDEX_COLUMN: key, ROW_TIME_COLUMN: calls.records.column("_time"), "number": number})
    return KeyBatchUpdate(pa.table({"number": count_after}), rows)


def make_stage(function: Any, forget_after: int, *, vectorized: bool) -> Stage:
    """A stage that numbers records."""
    window = StatefulFunction(
        function_ref(function), state_type(RecordCount), RETURNS, forget_after, vectorized
    )
    return Stage("counted", ("records",), window, (), key=("key",), sinks=(PaneLog("counted"),))


def sort_rows(batches: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Key, number and event time of all rows."""
    return sorted((row[:3] for rows in batches for row in rows), key=repr)


def make_bounded_input(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """A bounded run over the same records."""
    return [InputBatch(0, 0, tuple(record for batch in batches for record in batch.records), is_last=True)]


BOTH_FUNCTIONS = pytest.mark.parametrize(
    ("function", "vectorized"),
    [(count_per_key, False), (count_vectorized, True)],
    ids=["plain", "vectorized"],
)


@BOTH_FUNCTIONS
def test_a_record_after_the_expiry_finds_no_state(tmp_path: Path, function: Any, vectorized: bool) -> None:
    stage = make_stage(function, 10, vectorized=vectorized)
    batches = [
        make_batch(0, 0, ("a", 1, 1), ("b", 60, 1)),
        make_batch(1, 50),
        make_batch(2, 90, ("a", 100, 1), ("a", 95, 1)),
    ]
    rows = sort_rows(run_engine(stage, batches, tmp_path))
    assert rows == [("a", 1, 1), ("a", 1, 100), ("a", 2, 95), ("b", 1, 60)]
    assert sort_rows(run_reference(stage, make_bounded_input(batches))) == rows


@settings(max_examples=scale_examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    function_kind=st.sampled_from([(count_per_key, False), (count_vectorized, True)]),
    time_to_live=st.integers(1, 30),
    batches=histories(),
    data=st.data(),
)
def test_keys_expire_alike_in_live_and_bounded_runs(
    tmp_path_factory: pytest.TempPathFactory,
    function_kind: tuple[Any, bool],
    time_to_live: int,
    batches: list[InputBatch],
    data: st.DataObject,
) -> None:
    stage = make_stage(function_kind[0], time_to_live, vectorized=function_kind[1])
    live_batches = [*move_into_time(batches), InputBatch(99, 99, is_last=True)]
    split_at = data.draw(st.integers(0, len(live_batches)))
    joined_batches = [
        *(
            replace(batch, watermark=0, is_last=False)
            for batch in make_bounded_input(live_batches[:split_at])
        ),
        *make_bounded_input(live_batches[split_at:]),
    ]
    joined_batches = [replace(batch, id=number, clock=number) for number, batch in enumerate(joined_batches)]
    rows = sort_rows(run_engine(stage, live_batches, tmp_path_factory.mktemp("live")))
    assert (
        rows
        == sort_rows(run_reference(stage, live_batches))
        == sort_rows(run_reference(stage, make_bounded_input(live_batches)))
    )
    assert rows == sort_rows(run_engine(stage, joined_batches, tmp_path_factory.mktemp("cut")))


def move_into_time(batches: Sequence[InputBatch]) -> list[InputBatch]:
    """The same records in one partition, each moved beyond the watermark before it."""
    watermark_before, offset, moved = 0, count(), []
    for batch in batches:
        records = [
            replace(
                r,
                partition=0,
                offset=next(offset),
                fields={**r.fields, "at": r.fields["at"] + watermark_before},
            )
            for r in batch.records
        ]
        moved.append(replace(batch, records=tuple(records), is_last=False))
        watermark_before = int(batch.watermark or watermark_before)
    return moved


def test_a_timer_fires_before_its_key_expires_or_never(tmp_path: Path) -> None:
    def set_two_timers(call: KeyContext[RecordCount]) -> KeyUpdate[RecordCount]:
        timers = [Timer(call.records[-1].time + wait) for wait in (4, 12)] if call.records else None
        rows = [OutputRow({"number": timer.at}, timer.at) for timer in call.due_timers]
        return KeyUpdate(RecordCount(len(call.pending_timers)), rows, timers)

    stage = make_stage(set_two_timers, 10, vectorized=False)
    one_batch = [make_batch(0, 100, ("a", 1, 1), ("a", 50, 1))]
    many_batches = [
        make_batch(0, 0, ("a", 1, 1)),
        *(make_batch(number, number * 3) for number in range(1, 6)),
    ]
    many_batches = [*many_batches, make_batch(6, 40, ("a", 50, 1)), make_batch(7, 100)]
    for batches in (one_batch, many_batches):
        folder = tmp_path / str(len(batches))
        folder.mkdir()
        assert sort_rows(run_engine(stage, batches, folder)) == [("a", 5, 5), ("a", 54, 54)]
        assert sort_rows(run_reference(stage, batches)) == [("a", 5, 5), ("a", 54, 54)]
