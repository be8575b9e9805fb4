"""Cutting what is read into batches: so many records, and not more bytes than memory should hold."""

from collections.abc import Callable, Iterator
from typing import TypeVar

BATCH = 5_000
BATCH_BYTES = 8_388_608
Item = TypeVar("Item")


def in_batches(items: Iterator[Item], size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield items in lists that end with the item that reaches either limit; the same lists each time."""
    some: list[Item] = []
    size = 0
    for item in items:
        some.append(item)
        size += size_of(item)
        if len(some) == BATCH or size >= BATCH_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some
