"""Where tumbling windows are cut. What a key holds is one element, which stands for the open window."""

import numpy as np

from penstock.pipelines.fold.order.sequence import Cut, Series
from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.plan.policies import (
    ClosePolicy,
    CountPolicy,
    DeltaPolicy,
    PunctuationPolicy,
    TimePolicy,
)
from penstock.pipelines.state.columns import NEVER, Ints, Mask


def cut_tumbling(policy: ClosePolicy, series: Series, heads: Rows, clock: int) -> Cut:
    """Cut a series into windows that are closed, and what remains open."""
    number, closed = _numbered(policy, series, heads, clock)
    over = number < closed[series.key]
    begins = np.ones(len(number), bool)
    begins[1:] = (series.key[1:] != series.key[:-1]) | (number[1:] != number[:-1])
    edges = np.append(np.flatnonzero(begins), len(number))
    windows = over[edges[:-1]]
    kept = series.first + np.bincount(series.key[over], minlength=series.keys)
    # A window that was open before and still is goes on; any other that is open began in this batch.
    anew = (kept > series.first) | (series.came == series.first)
    heads["since"][anew] = clock
    return Cut(edges[:-1][windows], edges[1:][windows], series.key[edges[:-1][windows]], kept, heads)


def tumbling_due(policy: ClosePolicy, heads: Rows, holds: Mask) -> Ints:
    """When the clock alone closes the open window of each key."""
    match policy:
        case TimePolicy(elapsed):
            return np.where(holds, heads["since"] + elapsed, NEVER)
        case _:
            return np.full(len(heads), NEVER, np.int64)


def _numbered(policy: ClosePolicy, series: Series, heads: Rows, clock: int) -> tuple[Ints, Ints]:
    """The number of each element's window, from 0 for the open one, and how many of a key's are closed."""
    match policy:
        case CountPolicy(n):
            counted = series.so_far(series.rows["records"])
            return (counted - 1) // n, _last(series, counted) // n
        case PunctuationPolicy():
            matched = series.rows["matched"].astype(np.int64)
            before = series.so_far(matched)
            return before - matched, _last(series, before)
        case DeltaPolicy(field, by):
            return _by_distance(series, series.distances[field], by)
        case TimePolicy(elapsed):
            due = (series.came > series.first) & (heads["since"] + elapsed <= clock)
            return np.where(series.held, 0, due[series.key]), due.astype(np.int64)


def _by_distance(series: Series, values: Column, by: float) -> tuple[Ints, Ints]:
    numbers = np.empty(len(series.key), np.int64)
    closed = np.zeros(series.keys, np.int64)
    for key, (begin, end) in enumerate(zip(series.first.tolist(), series.beyond.tolist(), strict=True)):
        first, number = None, 0
        for at in range(begin, end):
            value = values[at]
            if value is not None:
                if first is None:
                    first = value
                elif value - first > by:
                    first, number = value, number + 1
            numbers[at] = number
        closed[key] = number
    return numbers, closed


def _last(series: Series, running: Ints) -> Ints:
    """The last of a running sum for each key, 0 for one without elements."""
    total = np.zeros(series.keys, np.int64)
    there = series.beyond > series.first
    total[there] = running[series.beyond[there] - 1]
    return total
