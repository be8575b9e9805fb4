"""Which partition a record goes to.

The producer decides, not the client library underneath: a route is a function of a record's key and sequence,
so a resumed producer knows where each record went before it was killed. `by_key` places keys where Kafka's Java
clients do, and so a key written by Spark or a console tool meets ours in one partition.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np
import numpy.typing as npt

from penstock.ingestion.errors import RouteError

Key = bytes | None
# (keys, sequence of the first, partitions) -> partition of each
Route = Callable[[Sequence[Key], int, int], list[int]]
BY_KEY, ROUND_ROBIN = "key", "round-robin"
_REMEMBERED = 200_000


def route_named(name: str) -> Route:
    """Return the route of a name: `key`, `round-robin`, or `module:function` for `by_function` of that function.

    Routes have names so that a producer can be told, after a kill, whether it routes as the one before it did.
    """
    if name in (BY_KEY, ROUND_ROBIN):
        return ByKey() if name == BY_KEY else round_robin
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise RouteError(
            f"'{name}' is no route: {error}; say {BY_KEY}, {ROUND_ROBIN}, or module:function for one of your own, "
            "which is given a key and a sequence and returns a number"
        ) from error
    return by_function(found, name)


def round_robin(keys: Sequence[Key], first: int, partitions: int) -> list[int]:
    """Spread records evenly, whatever their keys."""
    return [sequence % partitions for sequence in range(first, first + len(keys))]


def by_function(function: Callable[[Key, int], int], name: str) -> Route:
    """Route by a function of (key, sequence); it must give the same number each time, whatever the partitions."""

    def route(keys: Sequence[Key], first: int, partitions: int) -> list[int]:
        return [_asked(function, name, key, first + place) % partitions for place, key in enumerate(keys)]

    return route


def _asked(function: Callable[[Key, int], int], name: str, key: Key, sequence: int) -> int:
    try:
        answer = function(key, sequence)
    except Exception as error:
        # Whatever a function of somebody else's raises: it is told with what it was asked.
        raise RouteError(
            f"route {name} failed for key {key!r} and sequence {sequence}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(answer, int):
        raise RouteError(
            f"route {name} gave {answer!r} for key {key!r} and sequence {sequence}; it has to give a whole number"
        )
    return answer


class ByKey:
    """Same key, same partition; records without a key are spread evenly. Remembers the keys it met."""

    def __init__(self) -> None:
        self._hashes: dict[Key, int] = {}

    def __call__(self, keys: Sequence[Key], first: int, partitions: int) -> list[int]:
        """Return the partition of each key."""
        self._learn(keys)
        hashes = self._hashes
        routed = [-1 if key is None else hashes[key] % partitions for key in keys]
        if None in keys:
            return [(first + i) % partitions if lane < 0 else lane for i, lane in enumerate(routed)]
        return routed

    def _learn(self, keys: Sequence[Key]) -> None:
        distinct = set(keys)
        if len(self._hashes) + len(distinct) > _REMEMBERED:
            self._hashes = {}
        unknown = [key for key in distinct if key is not None and key not in self._hashes]
        if unknown:
            self._hashes |= zip(unknown, (murmur2(unknown) & 0x7FFFFFFF).tolist(), strict=True)


def murmur2(keys: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """Return the hash by which Kafka's Java clients place each key, before the sign is dropped."""
    result = np.empty(len(keys), dtype=np.uint32)
    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        joined = b"".join(keys[place] for place in places.tolist())
        result[places] = _murmur2_same_length(joined, len(places), length)
    return result


def _murmur2_same_length(joined: bytes, number: int, length: int) -> npt.NDArray[np.uint32]:
    m = np.uint32(0x5BD1E995)
    h = np.full(number, 0x9747B28C ^ length, dtype=np.uint32)
    data = np.frombuffer(joined, dtype=np.uint8).reshape(number, length)
    whole = length // 4 * 4
    for column in data[:, :whole].copy().view("<u4").T if whole else ():
        k = column * m
        k ^= k >> np.uint32(24)
        h = (h * m) ^ (k * m)
    if length > whole:
        for shift, column in enumerate(data[:, whole:].T):
            h ^= column.astype(np.uint32) << np.uint32(8 * shift)
        h *= m
    h ^= h >> np.uint32(13)
    h *= m
    h ^= h >> np.uint32(15)
    return h
