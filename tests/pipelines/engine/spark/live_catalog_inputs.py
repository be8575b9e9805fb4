"""The records of a live catalog, by phase: first, late within the lateness, the rest, closing records, too late.

A stream commits one phase before the next is sent, and a partition gets its late records before the rest.
So the size of batches does not decide which records are late.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any
from zlib import crc32

import msgspec
from tests.pipelines.engine.spark.bounded_catalog import START_MS, Record, generate_records

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.sensors import SensorGenerator
from penstock.ingestion.sources.flights import find_flights_file, load_departures

PARTITIONS = 2
DAY_MS = 86_400_000
LATE_SECONDS = {
    "lines": (50, 60),
    "clicks": (15, 30),
    "impressions": (0, 0),
    "ad-clicks": (0, 0),
    "queries": (0, 0),
    "flights": (0, 0),
    "nexmark-persons": (0, 0),
    "nexmark-auctions": (0, 0),
    "nexmark-bids": (66, 70),
}
"""The interval of seconds whose records are sent again, late and with a new id. Other topics: the default."""
DEFAULT_LATE_SECONDS = (30, 60)
SUBJECT_FIELDS = {
    "cards": ("card",), "card-limits": ("card",), "lines": ("text",), "queries": ("query",), "avg": ("key",),
    "tweets": ("hashtags", "user"), "clicks": ("user",), "sensors": ("device",), "ovens": ("oven",),
    "impressions": (), "ad-clicks": ("impression",), "flights": ("origin",), "nexmark-persons": ("id",),
    "nexmark-auctions": ("id", "seller"), "nexmark-bids": ("auction", "bidder"),
}  # fmt: skip
"""The fields that name the subject of a record. Closing records are about a subject of their own."""


@dataclass(frozen=True)
class SentRecord:
    """A record of a topic, with its phase and partition."""

    phase: str
    partition: int
    record: Record


def make_cards() -> list[Record]:
    """Return payments of few cards, some abroad, with amounts whose sums are exact."""
    records = generate_records("cards", 480, per_second=4)
    return [
        {
            **card,
            "card": f"card-{n % 24}",
            "amount": round(card["amount"] * 4) / 4,
            "country": "XX" if n % 50 == 0 else card["country"] if n % 7 == 0 else "DE",
        }
        for n, card in enumerate(records)
    ]


def make_clicks() -> list[Record]:
    """Return clicks of few users: visits of 15 seconds with pauses between them."""
    records = generate_records("clicks", 480, per_second=4)
    return [{**click, "user": f"user-{n // 60 % 4}-{n % 10}"} for n, click in enumerate(records)]


def make_card_limits() -> list[Record]:
    records = generate_records("card-limits", 200, per_second=200 / 120)
    return [{**limit, "card": f"card-{n % 29}"} for n, limit in enumerate(records)]


def make_lines() -> list[Record]:
    allowed = load_contract("lines").max_out_of_orderness_ms
    made = enumerate(generate_records("lines", 360, per_second=3))
    return [line for n, line in made if START_MS + n * 1_000 // 3 - line["at"] <= allowed]


def make_sensors() -> list[Record]:
    """Return readings of few devices; the generator makes one in a hundred late."""
    records = SensorGenerator(seed=1, device_count=5).generate_records(0, make_even_send_times(START_MS, 8))
    return [msgspec.to_builtins(each) for each in islice(records, 960)]


def make_impressions() -> list[Record]:
    return generate_records("impressions", 400, per_second=1 / 6)


def make_ad_clicks() -> list[Record]:
    """Return clicks on every fourth impression: before it, within ten minutes, and later."""
    sent = [
        {
            "id": f"{impression['id']}-{minutes}",
            "impression": impression["id"],
            "at": impression["at"] + minutes * 60_000,
        }
        for impression in make_impressions()[::4]
        for minutes in (-2, 1, 8, 16)
    ]
    return sorted(sent, key=lambda click: click["at"])


def nexmark_generator(topic: str, per_second: float) -> Callable[[], list[Record]]:
    """Return a generator of Nexmark events with one new person a second, so that new persons sell soon."""
    return lambda: generate_records(f"nexmark-{topic}", round(120 * per_second), per_second)


GENERATORS = {
    "lines": make_lines, "cards": make_cards, "card-limits": make_card_limits, "sensors": make_sensors,
    "impressions": make_impressions, "ad-clicks": make_ad_clicks, "clicks": make_clicks,
    "tweets": lambda: generate_records("tweets", 480, per_second=4),
    "avg": lambda: generate_records("avg", 60, per_second=0.5),
    "ovens": lambda: generate_records("ovens", 480, per_second=4),
    "queries": lambda: generate_records("queries", 8_000, per_second=100, seed=4),
    "flights": lambda: load_departures(find_flights_file()).slice(0, 1_500).to_pylist(),
    "nexmark-persons": nexmark_generator("persons", 1), "nexmark-auctions": nexmark_generator("auctions", 3),
    "nexmark-bids": nexmark_generator("bids", 10),
}  # fmt: skip


@cache
def list_sent_records(topic: str) -> tuple[SentRecord, ...]:
    """List everything that is sent to a topic, in order."""
    records = GENERATORS[topic]()
    cut = count_first_phase(topic, records)
    phases = {
        "first": records[:cut],
        "late": [*list_late_records(topic, records[:cut])],
        "then": records[cut:],
    }
    sent = [
        SentRecord(phase, choose_partition(topic, each), each)
        for phase, records in phases.items()
        for each in records
    ]
    time = load_contract(topic).event_time
    last = {**with_subject(topic, records[0], "over"), time: max(each[time] for each in records) + 3 * DAY_MS}
    sent += [SentRecord("close", n, with_id(last, f"over-{n}")) for n in range(PARTITIONS)]
    lost = with_subject(topic, with_id(records[5], "lost"), "lost")
    return (*sent, SentRecord("lost", choose_partition(topic, lost), lost))


def with_subject(topic: str, record: Record, subject: str) -> Record:
    return {**record, **{name: as_field_value(record[name], subject) for name in SUBJECT_FIELDS[topic]}}


def as_field_value(value: Any, subject: str) -> Any:
    """Convert a name to the type of a field: a list, a number or a string."""
    match value:
        case list():
            return [subject]
        case int():
            return crc32(subject.encode())
        case _:
            return subject


def list_late_records(topic: str, records: Sequence[Record]) -> Iterable[Record]:
    """List records behind the watermark but within the lateness, and duplicates where the stream drops them."""
    if topic == "ad-clicks":
        yield from make_late_clicks()
    begin, end = LATE_SECONDS.get(topic, DEFAULT_LATE_SECONDS)
    repeated = [each for each in records if begin * 1_000 <= each.get("at", 0) - START_MS < end * 1_000]
    yield from (with_id(each, f"{n}-late") for n, each in enumerate(repeated[:: max(1, len(repeated) // 6)]))
    if topic in ("cards", "queries"):
        yield from records[40:80]


def find_end_ms(topic: str) -> int:
    """Return a time between the records and the closing records."""
    time = load_contract(topic).event_time
    return DAY_MS + max(each[time] for each in GENERATORS[topic]())


def make_late_clicks() -> Iterable[Record]:
    """Make clicks on impressions without one, whose sessions ended in the minute before the watermark."""
    impressions = make_impressions()
    closed_before = impressions[count_first_phase("impressions", impressions)]["at"] - 10_000 - 600_000
    for number, impression in enumerate(impressions):
        if number % 4 and closed_before - 50_000 < impression["at"] < closed_before - 10_000:
            yield {
                "id": f"{impression['id']}-late",
                "impression": impression["id"],
                "at": impression["at"] + 240_000,
            }


def count_first_phase(topic: str, records: Sequence[Record]) -> int:
    """Count the records of the first phase; ad clicks end at the same time as impressions."""
    if topic != "ad-clicks":
        return len(records) * 2 // 3
    impressions = make_impressions()
    until = impressions[count_first_phase("impressions", impressions)]["at"]
    return sum(each["at"] < until for each in records)


def with_id(record: Record, id_: str) -> Record:
    return {**record, "id": as_field_value(record["id"], id_)} if "id" in record else record


def choose_partition(topic: str, record: Record) -> int:
    key = load_contract(topic).key or "at"
    return crc32(str(record[key]).encode()) % PARTITIONS


def list_phase_records(topic: str, phases: Iterable[str]) -> list[Record]:
    """List the records of some phases, in order."""
    return [each.record for each in list_sent_records(topic) if each.phase in phases]
