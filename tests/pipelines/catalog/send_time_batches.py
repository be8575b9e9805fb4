"""Batches of records, split by the times at which the records were sent."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.conformance.reference import InputBatch, InputRecord

START_MS = 1_767_603_600_000
Fields = Mapping[str, Any]


def split_by_send_time(
    sent: Iterable[tuple[int, Fields]],
    topic: str,
    step_ms: int,
    partition: Callable[[Fields], int] = lambda _: 0,
) -> Iterator[InputBatch]:
    """Yield a batch for each step with records, and one that ends the input."""
    offsets: dict[int, int] = {}
    steps: dict[int, list[InputRecord]] = {}
    for at, fields in sent:
        partition_number = partition(fields)
        offset = offsets[partition_number] = offsets.get(partition_number, -1) + 1
        steps.setdefault(at // step_ms, []).append(InputRecord(topic, partition_number, offset, fields))
    partitions = frozenset((topic, partition_number) for partition_number in offsets)
    last = 0
    for partition_number, (step, records) in enumerate(sorted(steps.items())):
        last = (step + 1) * step_ms
        yield InputBatch(partition_number, last, tuple(records), partitions)
    yield InputBatch(len(steps), last + step_ms, (), partitions, is_last=True)
