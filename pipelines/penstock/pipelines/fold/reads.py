"""The records of a batch as a function with a memory is handed them: a sequence for each key."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.fields import fields_of
from penstock.pipelines.fold.keyed import KeysInHand
from penstock.pipelines.fold.rows import numpy_column, python_values
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.remembering import Read

BLOCK = 10_000
"""Records made ready together: their memory is used again for the next, and never taken by a whole batch."""


def keys_of(stage: ReadyStage, hand: KeysInHand) -> Sequence[tuple[Any, ...]]:
    """The key of each key in hand, as Python has it."""
    columns = [hand.names.column(one.name).to_pylist() for one in stage.key]
    return list(zip(*columns, strict=True)) if columns else [()] * len(hand)


def reads_of(stage: ReadyStage, hand: KeysInHand) -> Iterator[Sequence[Read]]:
    """The records of each key, in the order of their arrival."""
    names = tuple(one.name for one in (*stage.key, *stage.fields))
    columns = [
        numpy_column(hand.records.column("_time")).tolist(),
        *(_of_records(hand, hand.names.column(one.name)) for one in stage.key),
        *(python_values(hand.records.column(one.name)) for one in stage.fields),
    ]
    bounds = np.searchsorted(hand.key_of_record, np.arange(len(hand) + 1)).tolist()
    for some in _in_blocks(bounds):
        first, last = some[0], some[-1]
        times, *values = (column[first:last] for column in columns)
        # Without a line of Python for each: this is most of what a call of the function costs.
        reads = (
            [*map(Read, times, fields_of(names)(*values))] if names else [Read(time, {}) for time in times]
        )
        yield from (reads[begin - first : end - first] for begin, end in pairwise(some))


def _in_blocks(bounds: list[int]) -> Iterator[list[int]]:
    """The bounds of keys, some keys at a time: as many as have so many records that one more counts little."""
    begin = 0
    while begin < len(bounds) - 1:
        end = max(bisect_right(bounds, bounds[begin] + BLOCK), begin + 2)
        yield bounds[begin:end]
        begin = end - 1


def _of_records(hand: KeysInHand, column: pa.ChunkedArray) -> list[Any]:
    """The value of each record's key, which all records of a key share."""
    values = np.fromiter(python_values(column), dtype=object, count=len(hand))
    of_records: list[Any] = values[hand.key_of_record].tolist()
    return of_records
