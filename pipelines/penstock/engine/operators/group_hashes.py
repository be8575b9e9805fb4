"""128-bit hashes of keys and windows, by which the state looks them up.

Two windows with the same hash would be treated as one. With five million open windows the odds are 1 in
10^25. The hashes are stored, so the hash function is part of the state's format.
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
    """Return the hash of each row's key, which may have no columns, one or several.

    A null equals only another null.
    """
    distinct_groups, group_of_row = hash_distinct_keys(columns, count)
    return distinct_groups.select(group_of_row)


def hash_distinct_keys(columns: Sequence[pa.ChunkedArray], count: int) -> tuple[GroupHashes, Int64Array]:
    """Return hashes of keys, and for each row the position of its key's hash. A hash may occur several times."""
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
    """Return the hash of each row's window, from its key's hash and its bounds."""
    lower, upper = start.astype(np.uint64), end.astype(np.uint64)
    hi = _mix_bits(keys.hi ^ _mix_bits(lower))
    return GroupHashes(hi, _mix_bits(keys.lo + hi + _mix_bits(upper + _GOLDEN_RATIO_64)))


def _normalize_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Map -0.0 to 0.0 and every NaN to one NaN. As in Spark, they are the same key."""
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
    """Spread each bit over all 64, so that the windows of one key are not neighbors."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
