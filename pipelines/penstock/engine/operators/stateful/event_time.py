"""Stateful functions in event-time order: records and timers interleave by time.

A record waits in the state until the watermark passes it; after that no record before it is in time. So the
calls depend only on the records that were in time, not on how they were split into batches.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import as_arrow, to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.keyed_batch import KeyedBatch, load_keyed_batch, make_stage_result
from penstock.engine.operators.ordered.key_sequences import address_sort_keys
from penstock.engine.operators.stateful.event_time_calls import EventTimeCaller
from penstock.engine.operators.stateful.key_records import iterate_key_records, list_keys
from penstock.engine.operators.stateful.key_state import KeyStateColumns, read_key_states
from penstock.engine.operators.stateful.per_key import make_row_columns
from penstock.engine.operators.stateful.per_key_validation import UpdateValidator
from penstock.engine.operators.stateful.schema import (
    PER_KEY_COLUMNS,
    RECORD_ADDRESS_FIELDS,
    WAITING_RECORDS_COLUMN,
)
from penstock.engine.operators.windowed.window_update import StageResult, make_late_rows
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state.header_columns import (
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    MAX_TIMESTAMP_MS,
    BoolArray,
    Int64Array,
)
from penstock.engine.state.state_tree import StateTree


def process_in_event_time(
    stage: CompiledStage, state: StateTree, elements: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Call the function for what the watermark has passed, and store the records that still wait."""
    window = stage.plan.window
    assert isinstance(window, StatefulFunction)
    is_late = to_numpy(elements.column("_time")) < batch_time.watermark_before
    in_time = elements.filter(pa.array(~is_late))
    keyed_batch = load_keyed_batch(
        stage, state, in_time, batch_time, [field.name for field in RECORD_ADDRESS_FIELDS]
    )
    records = _sort_records(stage, keyed_batch)
    is_passed = records.time < batch_time.watermark
    passed_records, waiting_records = records.where(is_passed), records.where(~is_passed)
    keyed_batch = replace(keyed_batch, records=passed_records.rows, key_of_record=passed_records.key)
    validator = UpdateValidator(window)
    caller, key_state_columns = EventTimeCaller(window, batch_time, validator), KeyStateColumns(validator)
    for key, key_state, key_records in zip(
        list_keys(stage, keyed_batch),
        read_key_states(window, keyed_batch),
        iterate_key_records(stage, keyed_batch),
        strict=True,
    ):
        caller.process_key(key, key_state, key_records)
        key_state_columns.add(key_state, caller.next_event_due(key_state), MAX_TIMESTAMP_MS)
    key_of_row = np.repeat(np.arange(len(keyed_batch)), key_state_columns.row_counts)
    rows = (
        key_of_row,
        validator.check_times(key_state_columns.row_times),
        make_row_columns(stage, validator, key_state_columns.rows),
    )
    result = make_stage_result(
        stage,
        keyed_batch,
        _make_changed_state(stage, keyed_batch, key_state_columns, waiting_records),
        rows,
        batch_time,
    )
    return replace(result, is_late=is_late, late_rows=_collect_late_rows(stage, elements, is_late))


@dataclass(frozen=True)
class BufferedRecords:
    """Records in call order: by key, time and address."""

    key: Int64Array
    time: Int64Array
    rows: pa.Table

    def where(self, is_chosen: BoolArray) -> "BufferedRecords":
        """Return the selected records."""
        return BufferedRecords(
            self.key[is_chosen], self.time[is_chosen], self.rows.filter(pa.array(is_chosen))
        )


def _sort_records(stage: CompiledStage, keyed_batch: KeyedBatch) -> BufferedRecords:
    """Return the waiting and the new records of the batch's keys, in call order."""
    names = [field.name for field in (*RECORD_ADDRESS_FIELDS, *stage.record_fields)]
    waiting = keyed_batch.stored.column(WAITING_RECORDS_COLUMN).combine_chunks()
    key_row_of_record = to_numpy(pa.chunked_array([pc.list_parent_indices(waiting)]))
    stored = pa.Table.from_struct_array(pc.list_flatten(waiting))
    incoming = keyed_batch.records.select(names).cast(stored.schema)
    rows = pa.concat_tables([stored, incoming]).combine_chunks()
    key = np.append(keyed_batch.key_of_stored[key_row_of_record], keyed_batch.key_of_record)
    time = to_numpy(rows.column("_time"))
    order = np.lexsort((*address_sort_keys(rows), time, key))
    return BufferedRecords(key[order], time[order], rows.take(pa.array(order)))


def _make_changed_state(
    stage: CompiledStage,
    keyed_batch: KeyedBatch,
    key_state_columns: KeyStateColumns,
    waiting_records: BufferedRecords,
) -> pa.Table:
    """Build the state rows. A key is due again when the watermark passes its first waiting record."""
    counts = np.bincount(waiting_records.key, minlength=len(keyed_batch))
    ends = np.append(0, np.cumsum(counts))
    waiting_due = np.full(len(keyed_batch), MAX_TIMESTAMP_MS)
    has_waiting = counts > 0
    waiting_due[has_waiting] = waiting_records.time[ends[:-1][has_waiting]] + 1
    rows = key_state_columns.to_rows()
    columns = {
        GROUP_HI: pa.array(keyed_batch.groups.hi),
        GROUP_LO: pa.array(keyed_batch.groups.lo),
        DUE_EVENT: pa.array(np.minimum(key_state_columns.due_times[0], waiting_due)),
        DUE_CLOCK: pa.array(key_state_columns.due_times[1]),
        DROPPED: pa.array(key_state_columns.is_dropped & ~has_waiting),
        **{name: keyed_batch.key_table.column(name) for name in keyed_batch.key_table.column_names},
        **{
            state_column.name: as_arrow(rows[state_column.name], state_column.type)
            for state_column in PER_KEY_COLUMNS
        },
        WAITING_RECORDS_COLUMN: _pack_waiting_records(stage, waiting_records, ends),
    }
    return pa.table([*columns.values()], names=[*columns])


def _pack_waiting_records(
    stage: CompiledStage, waiting_records: BufferedRecords, ends: Int64Array
) -> pa.Array:
    """Return the waiting records as one list per key."""
    fields = [*RECORD_ADDRESS_FIELDS, *stage.record_fields]
    parts = [waiting_records.rows.column(field.name).combine_chunks() for field in fields]
    structs = pa.StructArray.from_arrays(parts, fields=fields)
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), structs)


def _collect_late_rows(stage: CompiledStage, elements: pa.Table, is_late: BoolArray) -> pa.Table:
    """Return the records that arrived behind the watermark."""
    late_records = elements.filter(pa.array(is_late))
    time = to_numpy(late_records.column("_time"))
    bounds = {"window_start": time, "window_end": time + 1}
    for name, bound_values in bounds.items():
        late_records = late_records.append_column(name, pa.array(bound_values))
    return make_late_rows(stage, late_records, time, time + 1)
