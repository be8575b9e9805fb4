"""Partitioners: the assignment of records to partitions.

The producer assigns partitions itself, not the client library. A partitioner is a function of the key and sequence
of a record, so a resumed producer knows the partition of each earlier record. `KeyPartitioner` uses the hash of the
Kafka Java clients, so a key that Spark or a console tool writes goes to the same partition.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from penstock.core.errors import ReferenceImportError
from penstock.core.imports import import_reference
from penstock.ingestion.errors import PartitionerError

RecordKey = bytes | None
# (keys, first sequence, number of partitions) -> partition of each record
Partitioner = Callable[[Sequence[RecordKey], int, int], list[int]]
KEY_PARTITIONER, ROUND_ROBIN_PARTITIONER = "key", "round-robin"
_MAX_CACHED_KEYS = 200_000


def load_partitioner(name: str) -> Partitioner:
    """Return the partitioner with a name: `key`, `round-robin`, or `module:function`.

    Partitioners have names so that a resumed producer can check that it uses the same one as before.
    """
    if name in (KEY_PARTITIONER, ROUND_ROBIN_PARTITIONER):
        return KeyPartitioner() if name == KEY_PARTITIONER else assign_round_robin
    try:
        partition_function = import_reference(name)
    except ReferenceImportError as error:
        raise PartitionerError(
            f"'{name}' is not a partitioner: {error}. Use {KEY_PARTITIONER}, {ROUND_ROBIN_PARTITIONER}, or "
            "module:function for your own function of (key, sequence), which returns an integer."
        ) from error
    return make_function_partitioner(partition_function, name)


def assign_round_robin(keys: Sequence[RecordKey], first_sequence: int, partitions: int) -> list[int]:
    """Distribute records evenly, independent of their keys."""
    return [sequence % partitions for sequence in range(first_sequence, first_sequence + len(keys))]


def make_function_partitioner(function: Callable[[RecordKey, int], int], name: str) -> Partitioner:
    """Return a partitioner for a deterministic function of (key, sequence) that returns any integer."""

    def assign_partitions(keys: Sequence[RecordKey], first_sequence: int, partitions: int) -> list[int]:
        return [
            _call_partition_function(function, name, key, first_sequence + index) % partitions
            for index, key in enumerate(keys)
        ]

    return assign_partitions


def _call_partition_function(
    function: Callable[[RecordKey, int], int], name: str, key: RecordKey, sequence: int
) -> int:
    try:
        result = function(key, sequence)
    except Exception as error:
        # User code can raise any exception; report it with the arguments.
        raise PartitionerError(
            f"Partitioner {name} failed for key {key!r} and sequence {sequence}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(result, int):
        raise PartitionerError(
            f"Partitioner {name} returned {result!r} for key {key!r} and sequence {sequence}. Return an integer."
        )
    return result


class KeyPartitioner:
    """Same key, same partition; records without a key are distributed evenly. Caches the hashes of keys."""

    def __init__(self) -> None:
        self._hashes: dict[RecordKey, int] = {}

    def __call__(self, keys: Sequence[RecordKey], first_sequence: int, partitions: int) -> list[int]:
        """Return the partition of each record."""
        self._cache_hashes(keys)
        hashes = self._hashes
        partition_of_key = [-1 if key is None else hashes[key] % partitions for key in keys]
        if None in keys:
            return [
                (first_sequence + index) % partitions if partition < 0 else partition
                for index, partition in enumerate(partition_of_key)
            ]
        return partition_of_key

    def _cache_hashes(self, keys: Sequence[RecordKey]) -> None:
        distinct = set(keys)
        if len(self._hashes) + len(distinct) > _MAX_CACHED_KEYS:
            self._hashes = {}
        uncached = [key for key in distinct if key is not None and key not in self._hashes]
        if uncached:
            self._hashes |= zip(uncached, (murmur2(uncached) & 0x7FFFFFFF).tolist(), strict=True)


def murmur2(keys: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """Return the murmur2 hash of each key as the Kafka Java clients compute it, with the sign bit."""
    result = np.empty(len(keys), dtype=np.uint32)
    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    for length in np.unique(lengths).tolist():
        indexes = np.flatnonzero(lengths == length)
        key_bytes = b"".join(keys[index] for index in indexes.tolist())
        result[indexes] = _murmur2_same_length(key_bytes, len(indexes), length)
    return result


def _murmur2_same_length(key_bytes: bytes, key_count: int, length: int) -> npt.NDArray[np.uint32]:
    m = np.uint32(0x5BD1E995)
    h = np.full(key_count, 0x9747B28C ^ length, dtype=np.uint32)
    data = np.frombuffer(key_bytes, dtype=np.uint8).reshape(key_count, length)
    aligned_bytes = length // 4 * 4
    for column in data[:, :aligned_bytes].copy().view("<u4").T if aligned_bytes else ():
        k = column * m
        k ^= k >> np.uint32(24)
        h = (h * m) ^ (k * m)
    if length > aligned_bytes:
        for shift, column in enumerate(data[:, aligned_bytes:].T):
            h ^= column.astype(np.uint32) << np.uint32(8 * shift)
        h *= m
    h ^= h >> np.uint32(13)
    h *= m
    h ^= h >> np.uint32(15)
    return h
