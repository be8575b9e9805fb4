"""The records of a batch as a function with a memory is handed them: a sequence for each key."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.columnar import to_numpy, to_python_values
from penstock.engine.functions.stateful import KeyedRecord
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.keyed_batch import KeyedBatch
from penstock.engine.operators.stateful.record_dicts import make_dict_builder

RECORDS_PER_BLOCK = 10_000
"""Records made ready together: their memory is used again for the next, and never taken by a whole batch."""


def list_keys(stage: CompiledStage, keyed_batch: KeyedBatch) -> Sequence[tuple[Any, ...]]:
    """The key of each key in hand, as Python has it."""
    columns = [keyed_batch.key_table.column(field.name).to_pylist() for field in stage.key]
    return list(zip(*columns, strict=True)) if columns else [()] * len(keyed_batch)


def iterate_key_records(stage: CompiledStage, keyed_batch: KeyedBatch) -> Iterator[Sequence[KeyedRecord]]:
    """The records of each key, in the order of their arrival."""
    names = tuple(field.name for field in (*stage.key, *stage.record_fields))
    columns = [
        to_numpy(keyed_batch.records.column("_time")).tolist(),
        *(_repeat_key_values(keyed_batch, keyed_batch.key_table.column(field.name)) for field in stage.key),
        *(to_python_values(keyed_batch.records.column(field.name)) for field in stage.record_fields),
    ]
    bounds = np.searchsorted(keyed_batch.key_of_record, np.arange(len(keyed_batch) + 1)).tolist()
    for block_bounds in _iterate_blocks(bounds):
        first, last = block_bounds[0], block_bounds[-1]
        times, *values = (column[first:last] for column in columns)
        # Without a line of Python for each: this is most of what a call of the function costs.
        block_records = (
            [*map(KeyedRecord, times, make_dict_builder(names)(*values))]
            if names
            else [KeyedRecord(time, {}) for time in times]
        )
        yield from (block_records[begin - first : end - first] for begin, end in pairwise(block_bounds))


def _iterate_blocks(bounds: list[int]) -> Iterator[list[int]]:
    """The bounds of keys, some keys at a time: as many as have so many records that one more counts little."""
    begin = 0
    while begin < len(bounds) - 1:
        end = max(bisect_right(bounds, bounds[begin] + RECORDS_PER_BLOCK), begin + 2)
        yield bounds[begin:end]
        begin = end - 1


def _repeat_key_values(keyed_batch: KeyedBatch, column: pa.ChunkedArray) -> list[Any]:
    """The value of each record's key, which all records of a key share."""
    key_values = np.fromiter(to_python_values(column), dtype=object, count=len(keyed_batch))
    record_values: list[Any] = key_values[keyed_batch.key_of_record].tolist()
    return record_values
