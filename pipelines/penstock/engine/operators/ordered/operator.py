"""Order windows: process each key's records in order, after its stored ones.

Spark sends single records. No record is late, and each window emits one pane. First the windows are cut as
ranges of one sequence (tumbling, sliding); then the aggregates of all windows are merged in one call.
"""

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates import merge_partials
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import NumpyColumn, Rows, new_rows
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.ordered.key_sequences import KeySequences, load_key_sequences
from penstock.engine.operators.ordered.state_schema import (
    KEY_HEADER_COLUMNS,
    WINDOW_NUMBER_FIELD,
    delta_column,
)
from penstock.engine.operators.pane_rows import PaneHeaders, make_pane_rows
from penstock.engine.operators.windowed.window_update import (
    LoadedWindows,
    StageResult,
    make_late_rows,
    make_state_rows,
    sum_by_window,
)
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, Int64Array
from penstock.engine.state.state_tree import StateTree
from penstock.engine.windows.element_sequence import ElementSequence, WindowSlices, expand_ranges
from penstock.engine.windows.order_window import DELTA_BASE_COLUMN, OrderWindow


def process_ordered_windows(
    stage: CompiledStage, window: OrderWindow, state: StateTree, elements: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Fire what is due by the clock for each key, then process its new elements in order."""
    sequences = load_key_sequences(stage, state, elements, batch_time)
    slices = window.slice_windows(sequences.sequence, sequences.key_headers, batch_time.clock)
    panes = _make_panes(stage, sequences, slices, batch_time)
    no_times = np.empty(0, np.int64)
    is_late = np.zeros(elements.num_rows, bool)
    no_rows = pa.schema(stage.window_schema).empty_table()
    is_restated = np.zeros(panes.num_rows, bool)
    return StageResult(
        _make_buffered_state(stage, window, sequences, slices),
        panes,
        is_late,
        make_late_rows(stage, no_rows, no_times, no_times),
        is_restated,
    )


def _make_panes(
    stage: CompiledStage, sequences: KeySequences, slices: WindowSlices, batch_time: BatchTime
) -> pa.Table:
    rows, count = _aggregate_ranges(stage, sequences.sequence, slices.begin, slices.end), len(slices.begin)
    number_in_key = _number_within_key(slices.key_of_window)
    headers = PaneHeaders(
        _build_window_table(stage, sequences, slices.key_of_window, rows),
        timing=np.full(count, "on_time"),
        is_final=np.ones(count, bool),
        earlier_panes=np.zeros(count, np.int32),
        earlier_on_time_panes=np.zeros(count, np.int32),
        record_counts=rows["records"],
    )
    panes = make_pane_rows(
        stage,
        batch_time,
        "insert",
        headers,
        [accumulator.pane_values(rows) for accumulator in stage.accumulators],
        {
            WINDOW_NUMBER_FIELD.name: pa.array(
                sequences.key_headers["number"][slices.key_of_window] + number_in_key
            )
        },
    )
    np.add.at(sequences.key_headers["number"], slices.key_of_window, 1)
    return panes


def _build_window_table(
    stage: CompiledStage, sequences: KeySequences, key: Int64Array, rows: Rows
) -> pa.Table:
    """Return the key and bounds of each row."""
    keys = [sequences.key_table.column(field.name).take(pa.array(key)) for field in stage.key]
    bounds = [pa.array(rows[bound]) for bound in ("window_start", "window_end")]
    return pa.table([*keys, *bounds], schema=stage.window_schema)


def _number_within_key(key: Int64Array) -> Int64Array:
    """Return, for each window, how many windows of its key precede it. Windows are sorted by key."""
    first_of_key = np.searchsorted(key, key)
    return np.asarray(np.arange(len(key)) - first_of_key)


def _make_buffered_state(
    stage: CompiledStage, window: OrderWindow, sequences: KeySequences, slices: WindowSlices
) -> pa.Table:
    """Build the state rows: the buffered elements of each key, and one row for a key without any."""
    sequence = sequences.sequence
    has_buffered = sequence.end_of_key > slices.buffered_from
    if window.stores_single_records:
        begin, key = expand_ranges(
            slices.buffered_from, np.maximum(sequence.end_of_key, slices.buffered_from + 1)
        )
        end = np.where(has_buffered[key], begin + 1, begin)
    else:
        key, begin, end = np.arange(sequence.key_count), slices.buffered_from, sequence.end_of_key
    clock_due = window.next_due_clock(slices.key_headers, has_buffered)
    rows = _aggregate_ranges(stage, sequence, begin, end)
    rows["position"] = np.arange(len(key))
    for state_column in KEY_HEADER_COLUMNS:
        rows[state_column.name] = slices.key_headers[state_column.name][key]
    if DELTA_BASE_COLUMN in [state_column.name for state_column in stage.stored_columns]:
        rows[DELTA_BASE_COLUMN] = slices.key_headers[DELTA_BASE_COLUMN][key]
    loaded = LoadedWindows(sequences.keys.select(key), rows, _build_window_table(stage, sequences, key, rows))
    no_due = np.full(len(key), MAX_TIMESTAMP_MS, np.int64)
    return make_state_rows(stage, loaded, no_due, clock_due[key], np.zeros(len(key), bool))


def _aggregate_ranges(
    stage: CompiledStage, sequence: ElementSequence, begin: Int64Array, end: Int64Array
) -> Rows:
    """Aggregate ranges of elements, each into one row."""
    element_positions, range_of_element = expand_ranges(begin, end)
    elements, count = sequence.rows.where(element_positions), len(begin)
    rows = new_rows([part.state_column for part in stage.parts], count)
    merge_partials(stage.parts, rows, range_of_element, elements)
    rows["records"] = sum_by_window(range_of_element, elements["records"], count)
    is_filled = end > begin
    first_position = np.where(is_filled, begin, 0)
    rows["arrival_clock"] = (
        np.where(is_filled, sequence.rows["arrival_clock"][first_position], 0)
        if len(element_positions)
        else np.zeros(count, np.int64)
    )
    rows["window_start"] = np.where(is_filled, MAX_TIMESTAMP_MS, 0)
    rows["window_end"] = np.where(is_filled, -MAX_TIMESTAMP_MS, 0)
    np.minimum.at(rows["window_start"], range_of_element, elements["window_start"])
    np.maximum.at(rows["window_end"], range_of_element, elements["window_end"])
    for name, values in sequence.compared_values.items():
        rows[delta_column(name)] = _first_non_null(values, begin, end)
    return rows


def _first_non_null(values: NumpyColumn, begin: Int64Array, end: Int64Array) -> NumpyColumn:
    """Return the first value in each range that is not null."""
    valued_positions = np.flatnonzero([value is not None for value in values])
    nearest = np.searchsorted(valued_positions, begin)
    first_values = np.full(len(begin), None, object)
    has_value = nearest < len(valued_positions)
    has_value[has_value] = valued_positions[nearest[has_value]] < end[has_value]
    first_values[has_value] = values[valued_positions[nearest[has_value]]]
    return first_values
