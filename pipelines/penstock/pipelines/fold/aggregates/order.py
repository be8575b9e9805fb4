"""In what order elements stand: by event time and then address, or by address alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.pipelines.plan.aggregates import Order


@dataclass(frozen=True)
class Place:
    """Something that says where an element stands: the column that holds it, and its type."""

    name: str
    column: str
    type: pa.DataType


TIME = Place("time", "_time", pa.int64())
TOPIC = Place("topic", "_topic", pa.string())
PARTITION = Place("partition", "_partition", pa.int32())
OFFSET = Place("offset", "_offset", pa.int64())


def places(order: Order, *, several: bool) -> tuple[Place, ...]:
    """What elements are ordered by; the topic matters only where there are several inputs."""
    address = (TOPIC, PARTITION, OFFSET) if several else (PARTITION, OFFSET)
    return address if order == "arrival" else (TIME, *address)


def struct(*columns: str) -> str:
    """SQL for several columns as one value, compared from left to right."""
    return f"struct({', '.join(columns)})"


def named(of: Sequence[Place]) -> list[str]:
    """SQL for each place under its name."""
    return [f"{place.column} AS {place.name}" for place in of]
