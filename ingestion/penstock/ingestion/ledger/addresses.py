"""Where acknowledged records are: packing addresses for the ledger and unpacking them."""

import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock.ingestion.ledger.entries import Acknowledged

Runs = dict[int, list[tuple[int, int]]]


class Address(NamedTuple):
    """Where one acknowledged record is."""

    sequence: int
    topic: str
    partition: int
    offset: int


def runs_of(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return rising offsets as (first, length) of each stretch without a gap."""
    if not offsets:
        return []
    values = np.asarray(offsets, dtype=np.int64)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(values) != 1) + 1))
    lengths = np.diff(np.concatenate((starts, [len(values)])))
    return list(zip(values[starts].tolist(), lengths.tolist(), strict=True))


def pack_lanes(lanes: Sequence[int]) -> bytes:
    """Return the targets of consecutive records in few bytes."""
    return zlib.compress(np.asarray(lanes, dtype="<u2").tobytes(), 1)


def unpack_lanes(packed: bytes) -> list[int]:
    """Return what was given to `pack_lanes`."""
    lanes: list[int] = np.frombuffer(zlib.decompress(packed), dtype="<u2").tolist()
    return lanes


def addresses_in(entry: Acknowledged, targets: Sequence[tuple[str, int]]) -> Iterator[Address]:
    """Yield the address of every record of an entry, in the order of the sequences."""
    offsets = {lane: _each(runs) for lane, runs in entry.runs.items()}
    for place, lane in enumerate(unpack_lanes(entry.lanes)):
        topic, partition = targets[lane]
        yield Address(entry.first + place, topic, partition, next(offsets[lane]))


def _each(runs: Sequence[tuple[int, int]]) -> Iterator[int]:
    for first, length in runs:
        yield from range(first, first + length)
