"""What is sent to each topic of a demonstration, and when: from the topic's generator, or from its real records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

import msgspec
import pyarrow.compute as pc

from penstock.ingestion.contracts import load_contract, record_type
from penstock.ingestion.generators import GENERATORS, evenly
from penstock.ingestion.sources.flights import data_file, departures
from penstock.pipelines.demonstration import Demo
from penstock.platform.errors import DemoError

BEGAN = 1_767_603_600_000
"""Nine o'clock on a Monday, 5 January 2026: every demonstration of made records begins then."""


@dataclass(frozen=True)
class Sending:
    """A record, and when it is sent."""

    at: int
    record: msgspec.Struct


def sendings(topic: str, demo: Demo, topics: int = 1) -> Sequence[Sending]:
    """Return what is sent to one of so many topics; DemoError for a topic without an input of its own."""
    if topic == "flights":
        return list(flights(demo))
    if topic not in GENERATORS:
        known = ", ".join(sorted([*GENERATORS, "flights"]))
        raise DemoError(
            f"topic {topic} has no generator, so a demonstration has nothing to feed it with; there are: {known}. "
            "Add one to ingestion/penstock/ingestion/generators"
        )
    times = evenly(BEGAN, demo.rate * demo.shares.get(topic, 1 / topics))
    records = GENERATORS[topic](demo.seed).records(0, times)
    made = (Sending(times(number), record) for number, record in zip(count(), records, strict=False))
    return list(takewhile(lambda sending: sending.at < BEGAN + demo.last_ms, made))


def flights(demo: Demo) -> Iterator[Sending]:
    """Yield real departures, each when the aircraft left, from the first day of the year on."""
    table = departures(data_file())
    first = pc.min(table["departed"]).as_py()
    table = table.filter(pc.less(table["departed"], first - first % demo.step_ms + demo.last_ms))
    make = record_type(load_contract("flights"))
    for row in table.to_pylist():
        yield Sending(row["departed"], msgspec.convert(row, make, strict=False))
