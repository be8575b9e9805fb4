"""The stored and new records of a join without windows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.columnar import to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.joins.state_schema import (
    END_MARKER_COLUMN,
    LEFT_COLUMN,
    MATCHED_COLUMN,
    TIME_COLUMN,
    buffered_column,
)
from penstock.engine.operators.joins.window_join import find_null_keys
from penstock.engine.operators.keyed_batch import TOPIC_COLUMN, KeyedBatch
from penstock.engine.operators.ordered.state_schema import MATCHED_FIELD
from penstock.engine.state.header_columns import BoolArray
from penstock.engine.windows.join_window import JoinRecords


def load_join_records(stage: CompiledStage, keyed_batch: KeyedBatch) -> JoinRecords:
    """Load the stored and the new records of the batch's keys."""
    join = stage.plan.join
    assert join is not None
    stored, incoming = keyed_batch.stored, keyed_batch.records
    names = [field.name for field in stage.record_fields]
    stored_fields = stored.select([buffered_column(name) for name in names]).rename_columns(names)
    is_left = np.asarray(pc.equal(incoming.column(TOPIC_COLUMN), join.left))
    key_of_record = np.append(keyed_batch.key_of_stored, keyed_batch.key_of_record)
    return JoinRecords(
        key_of_record,
        np.append(to_numpy(stored.column(LEFT_COLUMN)), is_left).astype(bool),
        np.append(to_numpy(stored.column(TIME_COLUMN)), to_numpy(incoming.column("_time"))),
        np.append(np.zeros(stored.num_rows, bool), np.ones(incoming.num_rows, bool)),
        np.append(to_numpy(stored.column(MATCHED_COLUMN)), np.zeros(incoming.num_rows, bool)).astype(bool),
        find_null_keys(stage, keyed_batch.key_table)[key_of_record],
        _read_end_markers(stage, keyed_batch),
        pa.concat_tables([stored_fields, incoming.select(names)]).combine_chunks(),
    )


def _read_end_markers(stage: CompiledStage, keyed_batch: KeyedBatch) -> BoolArray:
    if stage.plan.window.record_condition is None:
        return np.zeros(keyed_batch.stored.num_rows + keyed_batch.records.num_rows, bool)
    stored_markers, incoming_markers = (
        keyed_batch.stored.column(END_MARKER_COLUMN),
        keyed_batch.records.column(MATCHED_FIELD.name),
    )
    return np.append(to_numpy(stored_markers), to_numpy(incoming_markers)).astype(bool)
