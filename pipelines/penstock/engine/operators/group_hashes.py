"""Who a window is: 128 bits made of its key and its bounds, by which the state finds it.

Two windows with equal bits would be taken for one; with five million open windows the odds are 1 in 10^25.
The bits are stored, so how they are made is part of the state's format.
"""

from collections.abc import Sequence
from math import nan

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from penstock.engine.state.header_columns import HashArray, Int64Array
from penstock.engine.state.sorted_run import GroupHashes

_ENCODE_KEY = msgspec.msgpack.Encoder().encode
_GOLDEN_RATIO_64 = np.uint64(0x9E3779B97F4A7C15)


def hash_keys(columns: Sequence[pa.ChunkedArray], count: int) -> GroupHashes:
    """The identity of each row's key, which may have no columns, one or several. Nulls are values of their own."""
    distinct_groups, group_of_row = hash_distinct_keys(columns, count)
    return distinct_groups.select(group_of_row)


def hash_distinct_keys(columns: Sequence[pa.ChunkedArray], count: int) -> tuple[GroupHashes, Int64Array]:
    """The identities of keys, and which of them is that of each row; one may be there several times."""
    columns = [_normalize_floats(column) for column in columns]
    if len(columns) == 1:
        encoded = columns[0].combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = (
                encoded.chunk(0) if encoded.num_chunks else pa.array([], columns[0].type).dictionary_encode()
            )
        if not encoded.null_count:
            distinct_groups = _hash_rows([(value,) for value in encoded.dictionary.to_pylist()])
            return distinct_groups, encoded.indices.to_numpy()
    rows = zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * count
    return _hash_rows(list(rows)), np.arange(count)


def hash_windows(keys: GroupHashes, start: Int64Array, end: Int64Array) -> GroupHashes:
    """The identity of each row's window: that of its key, and the bounds."""
    lower, upper = start.astype(np.uint64), end.astype(np.uint64)
    hi = _mix_bits(keys.hi ^ _mix_bits(lower))
    return GroupHashes(hi, _mix_bits(keys.lo + hi + _mix_bits(upper + _GOLDEN_RATIO_64)))


def _normalize_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with one zero and one NaN: as in Spark, and to everybody who compares them, these are one key."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(
        pc.is_nan(column), pa.scalar(nan, column.type), pc.add(column, pa.scalar(0.0, column.type))
    )


def _hash_rows(rows: Sequence[tuple[object, ...]]) -> GroupHashes:
    digests = b"".join(xxhash.xxh3_128_digest(_ENCODE_KEY(row)) for row in rows)
    halves = np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    return GroupHashes(halves[:, 0], halves[:, 1])


def _mix_bits(bits: HashArray) -> HashArray:
    """Spread each bit over all 64, so that windows of one key do not lie side by side."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
