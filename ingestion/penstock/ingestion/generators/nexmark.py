"""Nexmark: an auction house with persons, auctions and bids, one topic each.

Of fifty events one is a person, three are auctions and forty-six are bids. Each record refers to earlier records of
the other topics in that order. Feeds whose rates have the ratio 1 : 3 : 46 match each other.
"""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

FIRST_ID = 1_000
_AUCTIONS_PER_PERSON, _BIDS_PER_PERSON = 3, 46
_ACTIVE_PERSONS, _ACTIVE_AUCTIONS = 1_000, 100
_FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gita", "Hugo")
_FAMILY_NAMES = ("Abel", "Bauer", "Chen", "Diaz", "Evans", "Fox")
_CITIES = (
    ("Portland", "OR"),
    ("Boise", "ID"),
    ("Phoenix", "AZ"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Redmond", "OR"),
)
_CHANNELS = ("search", "mail", "partner", "direct")
_CHANNEL_IN_URL = "partner"


class _NexmarkDraws(NamedTuple):
    first: list[int]
    second: list[int]
    share: list[float]
    price: list[float]


class _NexmarkGenerator(SeededGenerator[_NexmarkDraws]):
    def draw_block(self, block: int, rng: np.random.Generator) -> _NexmarkDraws:
        """Draw the values that all three generators use."""
        return _NexmarkDraws(
            rng.integers(0, 2**31, BLOCK_RECORDS).tolist(),
            rng.integers(0, 2**31, BLOCK_RECORDS).tolist(),
            rng.random(BLOCK_RECORDS).tolist(),
            (10 ** rng.uniform(0, 6, BLOCK_RECORDS)).tolist(),
        )


class NexmarkPersonGenerator(_NexmarkGenerator):
    """Persons who sign up."""

    topic = "nexmark-persons"

    def make_fields(self, number: int, now_ms: int, draws: _NexmarkDraws, index: int) -> dict[str, Any]:
        """Return one person."""
        first, second = draws.first[index], draws.second[index]
        name = f"{_FIRST_NAMES[first % len(_FIRST_NAMES)]} {_FAMILY_NAMES[second % len(_FAMILY_NAMES)]}"
        city, state = _CITIES[first // 8 % len(_CITIES)]
        return {
            "id": FIRST_ID + number,
            "name": name,
            "email": f"{name.replace(' ', '.').lower()}.{number}@example.com",
            "city": city,
            "state": state,
            "at": now_ms,
        }


class NexmarkAuctionGenerator(_NexmarkGenerator):
    """Auctions of items."""

    topic = "nexmark-auctions"

    def make_fields(self, number: int, now_ms: int, draws: _NexmarkDraws, index: int) -> dict[str, Any]:
        """Return one auction by a seller who signed up before."""
        persons = number // _AUCTIONS_PER_PERSON + 1
        initial = round(draws.price[index])
        return {
            "id": FIRST_ID + number,
            "item": f"item-{draws.first[index] % 10_000}",
            "initial_bid": initial,
            "reserve": initial + round(draws.price[(index + 1) % BLOCK_RECORDS]),
            "at": now_ms,
            "expires": now_ms + 1_000 + draws.second[index] % 600_000,
            "seller": FIRST_ID + _pick_recent(persons, _ACTIVE_PERSONS, draws.second[index]),
            "category": 10 + draws.first[index] % 5,
        }


class NexmarkBidGenerator(_NexmarkGenerator):
    """Bids; half of them go to the hot auction, the newest of a hundred."""

    topic = "nexmark-bids"

    def make_fields(self, number: int, now_ms: int, draws: _NexmarkDraws, index: int) -> dict[str, Any]:
        """Return one bid by an existing person in an existing auction."""
        persons = number // _BIDS_PER_PERSON + 1
        auctions = persons * _AUCTIONS_PER_PERSON
        hot = (auctions - 1) // _ACTIVE_AUCTIONS * _ACTIVE_AUCTIONS
        cold = _pick_recent(auctions, _ACTIVE_AUCTIONS, draws.first[index])
        channel = _CHANNELS[draws.first[index] % len(_CHANNELS)]
        return {
            "id": f"{self.seed}-{number}",
            "auction": FIRST_ID + (hot if draws.share[index] < 0.5 else cold),
            "bidder": FIRST_ID + _pick_recent(persons, _ACTIVE_PERSONS, draws.second[index]),
            "price": round(draws.price[index]),
            "channel": channel,
            "url": _make_page_url(draws.second[index], with_channel=channel == _CHANNEL_IN_URL),
            "at": now_ms,
        }


def _make_page_url(draw: int, *, with_channel: bool) -> str:
    """Return the URL of a page in three folders; some URLs name the channel."""
    folders = "/".join(
        f"{name}{draw // size % 20}" for name, size in (("hall", 1), ("room", 20), ("shelf", 400))
    )
    sent_by = f"&channel_id={draw % 997}" if with_channel else ""
    return f"https://auctions.example.com/{folders}/item.html?query=1{sent_by}"


def _pick_recent(total: int, active: int, draw: int) -> int:
    """Return one of the last `active` of `total` numbers."""
    return total - 1 - draw % min(total, active)
