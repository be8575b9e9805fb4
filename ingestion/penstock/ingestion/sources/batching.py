"""Splits a sequence into batches with a limit of records and bytes."""

from collections.abc import Callable, Iterator
from typing import TypeVar

MAX_BATCH_RECORDS = 5_000
MAX_BATCH_BYTES = 8_388_608
Item = TypeVar("Item")


def cut_batches(items: Iterator[Item], measure_bytes: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield lists of items that end when a limit is reached; the split is deterministic."""
    batch: list[Item] = []
    size_bytes = 0
    for item in items:
        batch.append(item)
        size_bytes += measure_bytes(item)
        if len(batch) == MAX_BATCH_RECORDS or size_bytes >= MAX_BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch
