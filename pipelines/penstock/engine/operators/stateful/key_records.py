"""The records of a batch as stateful functions receive them: a sequence for each key."""

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
"""Records are converted in blocks of this size, so that a batch needs the memory of one block only."""


def list_keys(stage: CompiledStage, keyed_batch: KeyedBatch) -> Sequence[tuple[Any, ...]]:
    """Return the key values of each key as a Python tuple."""
    columns = [keyed_batch.key_table.column(field.name).to_pylist() for field in stage.key]
    return list(zip(*columns, strict=True)) if columns else [()] * len(keyed_batch)


def iterate_key_records(stage: CompiledStage, keyed_batch: KeyedBatch) -> Iterator[Sequence[KeyedRecord]]:
    """Yield the records of each key, in order of arrival."""
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
        # No Python code per record: building the records is most of the cost of a call.
        block_records = (
            [*map(KeyedRecord, times, make_dict_builder(names)(*values))]
            if names
            else [KeyedRecord(time, {}) for time in times]
        )
        yield from (block_records[begin - first : end - first] for begin, end in pairwise(block_bounds))


def _iterate_blocks(bounds: list[int]) -> Iterator[list[int]]:
    """Yield the bounds of consecutive keys, in blocks of about `RECORDS_PER_BLOCK` records."""
    begin = 0
    while begin < len(bounds) - 1:
        end = max(bisect_right(bounds, bounds[begin] + RECORDS_PER_BLOCK), begin + 2)
        yield bounds[begin:end]
        begin = end - 1


def _repeat_key_values(keyed_batch: KeyedBatch, column: pa.ChunkedArray) -> list[Any]:
    """Return the value of each record's key. Records of a key share the object."""
    key_values = np.fromiter(to_python_values(column), dtype=object, count=len(keyed_batch))
    record_values: list[Any] = key_values[keyed_batch.key_of_record].tolist()
    return record_values
