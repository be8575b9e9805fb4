"""Which partition a record goes to.

The producer decides, not the client library underneath: a route is a function of a record's key and sequence,
so a resumed producer knows where each record went before it was killed. `by_key` places keys where Kafka's Java
clients do, and so a key written by Spark or a console tool meets ours in one partition.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np
import numpy.typing as npt

from penstock.ingestion.errors import PartitionerError

RecordKey = bytes | None
# (keys, sequence of the first, partitions) -> partition of each
Partitioner = Callable[[Sequence[RecordKey], int, int], list[int]]
KEY_PARTITIONER, ROUND_ROBIN_PARTITIONER = "key", "round-robin"
_MAX_CACHED_KEYS = 200_000


def load_partitioner(name: str) -> Partitioner:
    """Return the route of a name: `key`, `round-robin`, or `module:function` for `by_function` of that function.

    Routes have names so that a producer can be told, after a kill, whether it routes as the one before it did.
    """
    if name in (KEY_PARTITIONER, ROUND_ROBIN_PARTITIONER):
        return KeyPartitioner() if name == KEY_PARTITIONER else assign_round_robin
    module, _, function = name.partition(":")
    try:
        partition_function = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise PartitionerError(
            f"'{name}' is no route: {error}; say {KEY_PARTITIONER}, {ROUND_ROBIN_PARTITIONER}, "
            "or module:function for one of your own, which is given a key and a sequence and returns a number"
        ) from error
    return make_function_partitioner(partition_function, name)


def assign_round_robin(keys: Sequence[RecordKey], first_sequence: int, partitions: int) -> list[int]:
    """Spread records evenly, whatever their keys."""
    return [sequence % partitions for sequence in range(first_sequence, first_sequence + len(keys))]


def make_function_partitioner(function: Callable[[RecordKey, int], int], name: str) -> Partitioner:
    """Route by a function of (key, sequence); it must give the same number each time, whatever the partitions."""

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
        # Whatever a function of somebody else's raises: it is told with what it was asked.
        raise PartitionerError(
            f"route {name} failed for key {key!r} and sequence {sequence}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(result, int):
        raise PartitionerError(
            f"route {name} gave {result!r} for key {key!r} and sequence {sequence}; it has to give a whole number"
        )
    return result


class KeyPartitioner:
    """Same key, same partition; records without a key are spread evenly. Remembers the keys it met."""

    def __init__(self) -> None:
        self._hashes: dict[RecordKey, int] = {}

    def __call__(self, keys: Sequence[RecordKey], first_sequence: int, partitions: int) -> list[int]:
        """Return the partition of each key."""
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
    """Return the hash by which Kafka's Java clients place each key, before the sign is dropped."""
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
