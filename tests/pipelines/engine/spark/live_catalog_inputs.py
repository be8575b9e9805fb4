"""What is sent to a live catalog, in phases: in order, with what comes late but counts, to the end, and too late.

A stream has committed one phase before the next is sent, and a partition's late records come before its others, so
what is late does not depend on how the batches are cut.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any
from zlib import crc32

import msgspec
from tests.pipelines.engine.spark.bounded_catalog import BEGAN, Record, generated

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.sensors import SensorGenerator
from penstock.ingestion.sources.flights import find_flights_file, load_departures

PARTITIONS = 2
DAY = 86_400_000
LATE = {
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
"""Seconds of which records come again, late and with an id of their own; all others have those of ORDINARY."""
ORDINARY = (30, 60)
ABOUT = {
    "cards": ("card",), "card-limits": ("card",), "lines": ("text",), "queries": ("query",), "avg": ("key",),
    "tweets": ("hashtags", "user"), "clicks": ("user",), "sensors": ("device",), "ovens": ("oven",),
    "impressions": (), "ad-clicks": ("impression",), "flights": ("origin",), "nexmark-persons": ("id",),
    "nexmark-auctions": ("id", "seller"), "nexmark-bids": ("auction", "bidder"),
}  # fmt: skip
"""The fields that say whom a record is about: what comes when all is over is about nobody else."""


@dataclass(frozen=True)
class Sending:
    """A record of a topic, where it goes, and when."""

    phase: str
    partition: int
    record: Record


def cards() -> list[Record]:
    """Payments of few cards, some abroad, in amounts whose sums are exact."""
    made = generated("cards", 480, per_second=4)
    return [
        {
            **card,
            "card": f"card-{n % 24}",
            "amount": round(card["amount"] * 4) / 4,
            "country": "XX" if n % 50 == 0 else card["country"] if n % 7 == 0 else "DE",
        }
        for n, card in enumerate(made)
    ]


def clicks() -> list[Record]:
    """Clicks of few visitors, who come for a quarter of a minute and again after a pause."""
    made = generated("clicks", 480, per_second=4)
    return [{**click, "user": f"user-{n // 60 % 4}-{n % 10}"} for n, click in enumerate(made)]


def card_limits() -> list[Record]:
    made = generated("card-limits", 200, per_second=200 / 120)
    return [{**limit, "card": f"card-{n % 29}"} for n, limit in enumerate(made)]


def lines() -> list[Record]:
    return [line for n, line in enumerate(generated("lines", 360, per_second=3))
            if BEGAN + n * 1_000 // 3 - line["at"] <= load_contract("lines").max_out_of_orderness_ms]  # fmt: skip


def sensors() -> list[Record]:
    """Readings of few devices; one in a hundred is late by itself."""
    made = SensorGenerator(seed=1, device_count=5).generate_records(0, make_even_send_times(BEGAN, 8))
    return [msgspec.to_builtins(each) for each in islice(made, 960)]


def impressions() -> list[Record]:
    return generated("impressions", 400, per_second=1 / 6)


def ad_clicks() -> list[Record]:
    """Clicks on every fourth showing: before it, within ten minutes, and after."""
    found = [
        {"id": f"{shown['id']}-{minutes}", "impression": shown["id"], "at": shown["at"] + minutes * 60_000}
        for shown in impressions()[::4]
        for minutes in (-2, 1, 8, 16)
    ]
    return sorted(found, key=lambda click: click["at"])


def auction_house(topic: str, per_second: float) -> Callable[[], list[Record]]:
    """Events of an auction house where every second somebody signs up, so that newcomers sell at once."""
    return lambda: generated(f"nexmark-{topic}", round(120 * per_second), per_second)


MADE = {
    "lines": lines, "cards": cards, "card-limits": card_limits, "sensors": sensors, "impressions": impressions,
    "ad-clicks": ad_clicks, "clicks": clicks,
    "tweets": lambda: generated("tweets", 480, per_second=4), "avg": lambda: generated("avg", 60, per_second=0.5),
    "ovens": lambda: generated("ovens", 480, per_second=4),
    "queries": lambda: generated("queries", 8_000, per_second=100, seed=4),
    "flights": lambda: load_departures(find_flights_file()).slice(0, 1_500).to_pylist(),
    "nexmark-persons": auction_house("persons", 1), "nexmark-auctions": auction_house("auctions", 3),
    "nexmark-bids": auction_house("bids", 10),
}  # fmt: skip


@cache
def sendings(topic: str) -> tuple[Sending, ...]:
    """All that is sent to a topic, in order."""
    made = MADE[topic]()
    cut = cut_of(topic, made)
    parts = {"first": made[:cut], "late": [*late(topic, made[:cut])], "then": made[cut:]}
    found = [
        Sending(phase, partition_of(topic, each), each)
        for phase, records in parts.items()
        for each in records
    ]
    time = load_contract(topic).event_time
    over = {**about(topic, made[0], "over"), time: max(each[time] for each in made) + 3 * DAY}
    found += [Sending("close", n, with_id(over, f"over-{n}")) for n in range(PARTITIONS)]
    lost = about(topic, with_id(made[5], "lost"), "lost")
    return (*found, Sending("lost", partition_of(topic, lost), lost))


def about(topic: str, record: Record, whom: str) -> Record:
    return {**record, **{name: like(record[name], whom) for name in ABOUT[topic]}}


def like(value: Any, whom: str) -> Any:
    """A name as such a field holds it: among others, or as a number."""
    match value:
        case list():
            return [whom]
        case int():
            return crc32(whom.encode())
        case _:
            return whom


def late(topic: str, made: Sequence[Record]) -> Iterable[Record]:
    """What comes when the watermark has passed it, while its windows are kept; and repeats, where ids count."""
    if topic == "ad-clicks":
        yield from late_clicks()
    begin, end = LATE.get(topic, ORDINARY)
    again = [each for each in made if begin * 1_000 <= each.get("at", 0) - BEGAN < end * 1_000]
    yield from (with_id(each, f"{n}-late") for n, each in enumerate(again[:: max(1, len(again) // 6)]))
    if topic in ("cards", "queries"):
        yield from made[40:80]


def end_of(topic: str) -> int:
    """A moment between the records and those that come when all is over."""
    time = load_contract(topic).event_time
    return DAY + max(each[time] for each in MADE[topic]())


def late_clicks() -> Iterable[Record]:
    """Clicks on showings that nobody clicked on, whose sessions ended within the minute before the watermark."""
    shown = impressions()
    passed = shown[cut_of("impressions", shown)]["at"] - 10_000 - 600_000
    for number, one in enumerate(shown):
        if number % 4 and passed - 50_000 < one["at"] < passed - 10_000:
            yield {"id": f"{one['id']}-late", "impression": one["id"], "at": one["at"] + 240_000}


def cut_of(topic: str, made: Sequence[Record]) -> int:
    """How many records are sent at first: clicks on advertisements up to the same moment as these."""
    if topic != "ad-clicks":
        return len(made) * 2 // 3
    shown = impressions()
    until = shown[cut_of("impressions", shown)]["at"]
    return sum(each["at"] < until for each in made)


def with_id(record: Record, id_: str) -> Record:
    return {**record, "id": like(record["id"], id_)} if "id" in record else record


def partition_of(topic: str, record: Record) -> int:
    key = load_contract(topic).key or "at"
    return crc32(str(record[key]).encode()) % PARTITIONS


def counted(topic: str, phases: Iterable[str]) -> list[Record]:
    """The records of some phases, in order."""
    return [each.record for each in sendings(topic) if each.phase in phases]
