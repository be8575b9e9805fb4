"""Joins without windows. Every row is final and is never retracted.

A record is late once the watermark has passed its time by more than the lateness. Records are stored as long
as a partner may arrive, so a record in time finds every partner that was in time.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.joins.join_records import load_join_records
from penstock.engine.operators.joins.state_schema import (
    END_MARKER_COLUMN,
    LEFT_COLUMN,
    MATCHED_COLUMN,
    TIME_COLUMN,
    buffered_column,
)
from penstock.engine.operators.keyed_batch import TOPIC_COLUMN, KeyedBatch, load_keyed_batch
from penstock.engine.operators.pane_rows import PaneHeaders, make_pane_rows
from penstock.engine.operators.windowed.window_update import StageResult, make_late_rows
from penstock.engine.state.header_columns import (
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    MAX_TIMESTAMP_MS,
    Int64Array,
)
from penstock.engine.state.state_tree import StateTree
from penstock.engine.windows.join_window import JoinMatches, JoinRecords, JoinWindow, RecordPairs


def process_unwindowed_join(
    stage: CompiledStage, window: JoinWindow, state: StateTree, elements: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Match new records with stored ones, and store those that may still match."""
    time = to_numpy(elements.column("_time"))
    is_late = np.asarray(stage.closes_at(time + 1) <= batch_time.watermark_before, bool)
    keyed_batch = load_keyed_batch(
        stage, state, elements.filter(pa.array(~is_late)), batch_time, (TOPIC_COLUMN,)
    )
    records = load_join_records(stage, keyed_batch)
    join = stage.plan.join
    assert join is not None
    matches = window.match_records(records, stage.plan.lateness, batch_time.watermark)
    left, right = window.select_rows(join.kind, records, matches)
    times = np.append(records.time, -MAX_TIMESTAMP_MS)
    row_times = window.row_times(times[left], times[right])
    panes = _make_panes(stage, keyed_batch, records, (left, right), row_times, batch_time)
    late_elements = elements.filter(pa.array(is_late))
    for bound in ("window_start", "window_end"):
        bound_values = time[is_late] + (bound == "window_end")
        late_elements = late_elements.append_column(bound, pa.array(bound_values))
    late_rows = make_late_rows(stage, late_elements, time[is_late], time[is_late] + 1)
    return StageResult(
        _make_state_rows(stage, keyed_batch, records, matches),
        panes,
        is_late,
        late_rows,
        np.zeros(panes.num_rows, bool),
    )


def _make_panes(
    stage: CompiledStage,
    keyed_batch: KeyedBatch,
    records: JoinRecords,
    pairs: RecordPairs,
    row_times: Int64Array,
    batch_time: BatchTime,
) -> pa.Table:
    left, right = pairs
    count = len(left)
    key_of_row = records.key_of_record[np.where(left >= 0, left, right)]
    keys = [keyed_batch.key_table.column(field.name).take(pa.array(key_of_row)) for field in stage.key]
    headers = PaneHeaders(
        pa.table([*keys, pa.array(row_times), pa.array(row_times + 1)], schema=stage.window_schema),
        timing=np.full(count, "on_time"),
        is_final=np.ones(count, bool),
        earlier_panes=np.zeros(count, np.int32),
        earlier_on_time_panes=np.zeros(count, np.int32),
        record_counts=(left >= 0).astype(np.int64) + (right >= 0),
    )
    return make_pane_rows(
        stage,
        batch_time,
        "insert",
        headers,
        None,
        _make_row_columns(stage, keyed_batch, records, left, right),
    )


def _make_row_columns(
    stage: CompiledStage, keyed_batch: KeyedBatch, records: JoinRecords, left: Int64Array, right: Int64Array
) -> dict[str, pa.Array]:
    """Return the columns of the rows, null for a missing side."""
    join = stage.plan.join
    assert join is not None
    sides = {join.left: left, join.right: right}
    values: dict[str, Any] = {}
    for column, field in zip(join.columns, stage.result_fields, strict=True):
        positions = sides[column.input]
        row_numbers = pa.array(np.maximum(positions, 0), mask=positions < 0)
        if column.field in records.fields.column_names:
            record_values = records.fields.column(column.field)
            values[column.name] = pc.take(record_values, row_numbers).combine_chunks()
        else:  # a key field, which both sides have
            key_of_row = pa.array(
                records.key_of_record[np.maximum(positions, 0)] if len(records) else positions,
                mask=positions < 0,
            )
            values[column.name] = pc.take(
                keyed_batch.key_table.column(column.field), key_of_row
            ).combine_chunks()
        values[column.name] = values[column.name].cast(field.type)
    return values


def _make_state_rows(
    stage: CompiledStage, keyed_batch: KeyedBatch, records: JoinRecords, matches: JoinMatches
) -> pa.Table:
    """Build the state rows: one per stored record, and a tombstone for each key without records."""
    buffered = np.flatnonzero(matches.is_buffered)
    keys_without_records = np.setdiff1d(np.arange(len(keyed_batch)), records.key_of_record[buffered])
    key = np.append(records.key_of_record[buffered], keys_without_records)
    order = np.argsort(key, kind="stable")
    key, record_position = key[order], np.append(buffered, np.full(len(keys_without_records), -1))[order]
    is_dropped = record_position < 0
    row_numbers = pa.array(np.maximum(record_position, 0), mask=is_dropped)
    groups = keyed_batch.groups.select(key)
    count = len(key)
    positions = np.maximum(record_position, 0)

    def take_or_default(column: np.ndarray, default: Any) -> np.ndarray:
        return np.where(is_dropped, default, column[positions]) if len(records) else np.full(count, default)

    columns: dict[str, Any] = {
        GROUP_HI: groups.hi,
        GROUP_LO: groups.lo,
        DUE_EVENT: take_or_default(matches.due_event, MAX_TIMESTAMP_MS),
        DUE_CLOCK: np.full(count, MAX_TIMESTAMP_MS),
        DROPPED: is_dropped,
        **{
            name: keyed_batch.key_table.column(name).take(pa.array(key))
            for name in keyed_batch.key_table.column_names
        },
        LEFT_COLUMN: take_or_default(records.is_left, default=False),
        TIME_COLUMN: take_or_default(records.time, 0),
        MATCHED_COLUMN: take_or_default(matches.is_matched, default=False),
        **(
            {END_MARKER_COLUMN: take_or_default(records.is_end_marker, default=False)}
            if stage.plan.window.record_condition is not None
            else {}
        ),
        **{
            buffered_column(field.name): pc.take(records.fields.column(field.name), row_numbers)
            for field in stage.record_fields
        },
    }
    return pa.table(columns)
