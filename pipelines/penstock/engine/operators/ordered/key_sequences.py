"""Load the keys of a batch: their stored and new elements, in one sequence."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates import lift_elements
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import NumpyColumn, Rows, new_rows, to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.group_hashes import hash_keys
from penstock.engine.operators.ordered.state_schema import (
    KEY_HEADER_COLUMNS,
    delta_column,
)
from penstock.engine.operators.windowed.window_update import (
    collect_key_columns,
    find_due_groups,
    find_positions,
    union_groups,
)
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.state.sorted_run import GroupHashes
from penstock.engine.state.state_tree import StateTree
from penstock.engine.windows.element_sequence import ElementSequence
from penstock.engine.windows.order_window import DELTA_BASE_COLUMN


@dataclass(frozen=True)
class KeyedRows:
    """Rows, and the number of the key that each belongs to."""

    key_of_row: Int64Array
    table: pa.Table

    def where(self, is_chosen: BoolArray) -> "KeyedRows":
        """Return the selected rows."""
        return KeyedRows(self.key_of_row[is_chosen], self.table.filter(pa.array(is_chosen)))


@dataclass(frozen=True)
class KeySequences:
    """The keys of a batch, their headers, and the elements of all of them."""

    keys: GroupHashes
    key_table: pa.Table
    key_headers: Rows
    sequence: ElementSequence


def load_key_sequences(
    stage: CompiledStage, state: StateTree, elements: pa.Table, batch_time: BatchTime
) -> KeySequences:
    """Load the keys that have new elements or are due, with all their elements in order."""
    incoming_groups = hash_keys([elements.column(field.name) for field in stage.key], elements.num_rows)
    keys = union_groups(incoming_groups, find_due_groups(state, batch_time))
    stored, key_of_stored = state.look_up_groups(keys)
    key_of_element = find_positions(keys, incoming_groups)
    key_headers = new_rows(KEY_HEADER_COLUMNS, len(keys))
    for state_column in KEY_HEADER_COLUMNS:
        key_headers[state_column.name][key_of_stored] = to_numpy(stored.column(state_column.name))
    if DELTA_BASE_COLUMN in stored.column_names:
        key_headers[DELTA_BASE_COLUMN] = np.full(len(keys), None, object)
        key_headers[DELTA_BASE_COLUMN][key_of_stored] = _to_object_values(stored.column(DELTA_BASE_COLUMN))
    key_names = [field.name for field in stage.key]
    key_table = collect_key_columns(key_names, stored, key_of_stored, elements, key_of_element, len(keys))
    stored_rows, incoming_rows = KeyedRows(key_of_stored, stored), KeyedRows(key_of_element, elements)
    return KeySequences(
        keys,
        key_table,
        key_headers,
        _build_sequence(stage, len(keys), stored_rows, incoming_rows, batch_time),
    )


def _build_sequence(
    stage: CompiledStage, keys: int, stored: KeyedRows, incoming: KeyedRows, batch_time: BatchTime
) -> ElementSequence:
    buffered = stored.where(to_numpy(stored.table.column("records")) > 0)
    old_columns, new_columns = (
        _read_buffered(stage, buffered.table),
        _lift_incoming(stage, incoming.table, batch_time),
    )
    buffered_order = np.lexsort((to_numpy(buffered.table.column("position")), buffered.key_of_row))
    incoming_order = np.lexsort((*address_sort_keys(incoming.table), incoming.key_of_row))
    key, order = (
        np.append(buffered.key_of_row, incoming.key_of_row),
        np.append(buffered_order, len(buffered.key_of_row) + incoming_order),
    )
    order = order[np.argsort(key[order], kind="stable")]
    columns = {
        name: np.concatenate([old_columns[name], new_columns[name]])[order] for name in stage.element_columns
    }
    compared_values = {
        name: np.append(
            _to_object_values(buffered.table.column(delta_column(name))),
            _to_object_values(incoming.table.column(name)),
        )
        for name in stage.plan.window.numeric_fields
    }
    sorted_values = {name: values[order] for name, values in compared_values.items()}
    return ElementSequence(
        keys, key[order], order < len(buffered.key_of_row), Rows(columns, len(key)), sorted_values
    )


def _read_buffered(stage: CompiledStage, buffered: pa.Table) -> Rows:
    columns = {name: to_numpy(buffered.column(name)) for name in stage.element_columns if name != "matched"}
    return Rows({**columns, "matched": np.zeros(buffered.num_rows, bool)}, buffered.num_rows)


def _lift_incoming(stage: CompiledStage, elements: pa.Table, batch_time: BatchTime) -> Rows:
    rows, count = lift_elements(stage.parts, elements), elements.num_rows
    time = to_numpy(elements.column("_time"))
    rows["records"] = np.ones(count, np.int64)
    rows["arrival_clock"] = np.full(count, batch_time.clock, np.int64)
    rows["window_start"], rows["window_end"] = time, time + 1
    matches = "_matched" in elements.column_names
    rows["matched"] = to_numpy(elements.column("_matched")) if matches else np.zeros(count, bool)
    return rows


def address_sort_keys(elements: pa.Table) -> tuple[NumpyColumn, ...]:
    """Return the address columns to sort by, least significant first."""
    topics = elements.column("_topic")
    distinct_topics = sorted(topics.unique().to_pylist())
    topic_rank = np.zeros(elements.num_rows, np.int32)  # usually there is one topic
    if len(distinct_topics) > 1:
        topic_rank = to_numpy(pc.index_in(topics, pa.array(distinct_topics, pa.string())))
    return to_numpy(elements.column("_offset")), to_numpy(elements.column("_partition")), topic_rank


def _to_object_values(column: pa.ChunkedArray) -> NumpyColumn:
    """Return Python values, None for null."""
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))
