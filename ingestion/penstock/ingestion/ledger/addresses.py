"""Addresses of acknowledged records: topic, partition and offset, packed for the ledger."""

import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock.ingestion.ledger.entries import Acknowledgement

OffsetRunsByTarget = dict[int, list[tuple[int, int]]]


class DeliveryAddress(NamedTuple):
    """The topic, partition and offset of one acknowledged record."""

    sequence: int
    topic: str
    partition: int
    offset: int


def to_offset_runs(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending offsets as runs without gaps: (first offset, length)."""
    if not offsets:
        return []
    values = np.asarray(offsets, dtype=np.int64)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(values) != 1) + 1))
    lengths = np.diff(np.concatenate((starts, [len(values)])))
    return list(zip(values[starts].tolist(), lengths.tolist(), strict=True))


def pack_target_ids(target_ids: Sequence[int]) -> bytes:
    """Return the target ids of consecutive records as compressed bytes."""
    return zlib.compress(np.asarray(target_ids, dtype="<u2").tobytes(), 1)


def unpack_target_ids(packed: bytes) -> list[int]:
    """Return the target ids that `pack_target_ids` packed."""
    target_ids: list[int] = np.frombuffer(zlib.decompress(packed), dtype="<u2").tolist()
    return target_ids


def unpack_addresses(entry: Acknowledgement, targets: Sequence[tuple[str, int]]) -> Iterator[DeliveryAddress]:
    """Yield the address of every record of an entry, ordered by sequence."""
    offsets = {target_id: _iterate_offsets(runs) for target_id, runs in entry.offset_runs.items()}
    for index, target_id in enumerate(unpack_target_ids(entry.target_ids)):
        topic, partition = targets[target_id]
        yield DeliveryAddress(entry.first_sequence + index, topic, partition, next(offsets[target_id]))


def _iterate_offsets(runs: Sequence[tuple[int, int]]) -> Iterator[int]:
    for first, length in runs:
        yield from range(first, first + length)
