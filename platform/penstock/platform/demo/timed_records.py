"""The records of a demonstration with their send times: from the topic's generator, or from real data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

import msgspec
import pyarrow.compute as pc

from penstock.ingestion.contracts import load_contract, record_type
from penstock.ingestion.generators import GENERATORS, make_even_send_times
from penstock.ingestion.sources.flights import find_flights_file, load_departures
from penstock.pipelines.demonstration import Demo
from penstock.platform.errors import DemoError

DEMO_START_MS = 1_767_603_600_000
"""Monday, 5 January 2026, 09:00 UTC: the start of every demonstration with generated records."""


@dataclass(frozen=True)
class TimedRecord:
    """A record and its send time."""

    sent_at_ms: int
    record: msgspec.Struct


def build_timed_records(topic: str, demo: Demo, topic_count: int = 1) -> Sequence[TimedRecord]:
    """Return the records for one of `topic_count` topics. Raises DemoError for a topic without a generator."""
    if topic == "flights":
        return list(iter_flights(demo))
    if topic not in GENERATORS:
        raise DemoError(
            f"topic {topic} has no generator, so a demonstration has no input for it; add one to "
            "ingestion/penstock/ingestion/generators"
        )
    time_of = make_even_send_times(DEMO_START_MS, demo.rate * demo.shares.get(topic, 1 / topic_count))
    records = GENERATORS[topic](demo.seed).generate_records(0, time_of)
    timed_records = (
        TimedRecord(time_of(number), record) for number, record in zip(count(), records, strict=False)
    )
    return list(
        takewhile(lambda timed_record: timed_record.sent_at_ms < DEMO_START_MS + demo.last_ms, timed_records)
    )


def iter_flights(demo: Demo) -> Iterator[TimedRecord]:
    """Yield real departures from the first day of the year on, each sent at its departure time."""
    table = load_departures(find_flights_file())
    first_ms = pc.min(table["departed"]).as_py()
    table = table.filter(pc.less(table["departed"], first_ms - first_ms % demo.step_ms + demo.last_ms))
    record_class = record_type(load_contract("flights"))
    for row in table.to_pylist():
        yield TimedRecord(row["departed"], msgspec.convert(row, record_class, strict=False))
