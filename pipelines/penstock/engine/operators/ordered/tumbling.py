"""Tumbling order windows: where to cut. The open window of a key is stored as one element."""

import numpy as np

from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.operators.ordered.element_sequence import ElementSequence, WindowSlices
from penstock.engine.plan.policies import ClosePolicy, CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array


def slice_tumbling(
    policy: ClosePolicy, sequence: ElementSequence, key_headers: Rows, clock: int
) -> WindowSlices:
    """Cut a sequence into closed windows, and keep the open rest."""
    window_number, closed_counts = _number_windows(policy, sequence, key_headers, clock)
    is_closed = window_number < closed_counts[sequence.key_of_element]
    is_first = np.ones(len(window_number), bool)
    is_first[1:] = (sequence.key_of_element[1:] != sequence.key_of_element[:-1]) | (
        window_number[1:] != window_number[:-1]
    )
    edges = np.append(np.flatnonzero(is_first), len(window_number))
    is_closed_window = is_closed[edges[:-1]]
    buffered_from = sequence.first_of_key + np.bincount(
        sequence.key_of_element[is_closed], minlength=sequence.key_count
    )
    # An open window that already existed keeps its start; any other open window starts in this batch.
    starts_anew = (buffered_from > sequence.first_of_key) | (sequence.first_incoming == sequence.first_of_key)
    key_headers["since_clock"][starts_anew] = clock
    return WindowSlices(
        edges[:-1][is_closed_window],
        edges[1:][is_closed_window],
        sequence.key_of_element[edges[:-1][is_closed_window]],
        buffered_from,
        key_headers,
    )


def next_tumbling_due(policy: ClosePolicy, key_headers: Rows, has_buffered: BoolArray) -> Int64Array:
    """Return the clock at which each key's open window closes without a new record."""
    match policy:
        case TimePolicy(elapsed):
            return np.where(has_buffered, key_headers["since_clock"] + elapsed, MAX_TIMESTAMP_MS)
        case _:
            return np.full(len(key_headers), MAX_TIMESTAMP_MS, np.int64)


def _number_windows(
    policy: ClosePolicy, sequence: ElementSequence, key_headers: Rows, clock: int
) -> tuple[Int64Array, Int64Array]:
    """Return window numbers and closed windows.

    Each element has a window number, 0 for the open window; each key has a number of closed windows.
    """
    match policy:
        case CountPolicy(n):
            record_sums = sequence.running_sums(sequence.rows["records"])
            return (record_sums - 1) // n, _last_of_key(sequence, record_sums) // n
        case PunctuationPolicy():
            matched = sequence.rows["matched"].astype(np.int64)
            match_sums = sequence.running_sums(matched)
            return match_sums - matched, _last_of_key(sequence, match_sums)
        case DeltaPolicy(field, delta):
            return _number_by_delta(sequence, sequence.delta_values[field], delta)
        case TimePolicy(elapsed):
            is_due = (sequence.first_incoming > sequence.first_of_key) & (
                key_headers["since_clock"] + elapsed <= clock
            )
            return np.where(sequence.is_buffered, 0, is_due[sequence.key_of_element]), is_due.astype(np.int64)


def _number_by_delta(
    sequence: ElementSequence, values: NumpyColumn, delta: float
) -> tuple[Int64Array, Int64Array]:
    window_numbers = np.empty(len(sequence.key_of_element), np.int64)
    closed_counts = np.zeros(sequence.key_count, np.int64)
    for key, (begin, end) in enumerate(
        zip(sequence.first_of_key.tolist(), sequence.end_of_key.tolist(), strict=True)
    ):
        first, window_number = None, 0
        for position in range(begin, end):
            value = values[position]
            if value is not None:
                if first is None:
                    first = value
                elif value - first > delta:
                    first, window_number = value, window_number + 1
            window_numbers[position] = window_number
        closed_counts[key] = window_number
    return window_numbers, closed_counts


def _last_of_key(sequence: ElementSequence, running_sums: Int64Array) -> Int64Array:
    """Return the last value of a running sum for each key; 0 for a key without elements."""
    last_values = np.zeros(sequence.key_count, np.int64)
    has_elements = sequence.end_of_key > sequence.first_of_key
    last_values[has_elements] = running_sums[sequence.end_of_key[has_elements] - 1]
    return last_values
