"""Records as a topic brings them, cut into batches by the moments at which they were sent."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.conformance.reference import InputBatch, InputRecord

BEGAN = 1_767_603_600_000
Fields = Mapping[str, Any]


def batches(
    sent: Iterable[tuple[int, Fields]],
    topic: str,
    step_ms: int,
    partition: Callable[[Fields], int] = lambda _: 0,
) -> Iterator[InputBatch]:
    """Yield a batch for each step in which something was sent, and one that ends the input."""
    offsets: dict[int, int] = {}
    steps: dict[int, list[InputRecord]] = {}
    for at, fields in sent:
        number = partition(fields)
        offset = offsets[number] = offsets.get(number, -1) + 1
        steps.setdefault(at // step_ms, []).append(InputRecord(topic, number, offset, fields))
    places = frozenset((topic, number) for number in offsets)
    last = 0
    for number, (step, records) in enumerate(sorted(steps.items())):
        last = (step + 1) * step_ms
        yield InputBatch(number, last, tuple(records), places)
    yield InputBatch(len(steps), last + step_ms, (), places, is_last=True)
