"""Nexmark: an auction house with persons, auctions and bids, one topic each.

Of fifty events one is a person, three are auctions and forty-six bids. A record of one topic refers to records of
the others that come before it in that order, so feeds whose rates stand as 1 : 3 : 46 fit together.
"""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

FIRST_ID = 1_000
_AUCTIONS_PER_PERSON, _BIDS_PER_PERSON = 3, 46
_ACTIVE_PERSONS, _ACTIVE_AUCTIONS = 1_000, 100
_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gita", "Hugo")
_FAMILIES = ("Abel", "Bauer", "Chen", "Diaz", "Evans", "Fox")
_CITIES = (
    ("Portland", "OR"),
    ("Boise", "ID"),
    ("Phoenix", "AZ"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Redmond", "OR"),
)
_CHANNELS = ("search", "mail", "partner", "direct")
_NAMED_IN_URL = "partner"


class _Draws(NamedTuple):
    first: list[int]
    second: list[int]
    share: list[float]
    price: list[float]


class _Nexmark(Seeded[_Draws]):
    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw what any of the three needs."""
        return _Draws(
            source.integers(0, 2**31, BLOCK).tolist(),
            source.integers(0, 2**31, BLOCK).tolist(),
            source.random(BLOCK).tolist(),
            (10 ** source.uniform(0, 6, BLOCK)).tolist(),
        )


class NexmarkPersons(_Nexmark):
    """People who sign up."""

    topic = "nexmark-persons"

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one person."""
        first, second = draws.first[place], draws.second[place]
        name = f"{_NAMES[first % len(_NAMES)]} {_FAMILIES[second % len(_FAMILIES)]}"
        city, state = _CITIES[first // 8 % len(_CITIES)]
        return {
            "id": FIRST_ID + number,
            "name": name,
            "email": f"{name.replace(' ', '.').lower()}.{number}@example.com",
            "city": city,
            "state": state,
            "at": now_ms,
        }


class NexmarkAuctions(_Nexmark):
    """Things that people sell."""

    topic = "nexmark-auctions"

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one auction, of a seller who signed up before."""
        persons = number // _AUCTIONS_PER_PERSON + 1
        initial = round(draws.price[place])
        return {
            "id": FIRST_ID + number,
            "item": f"item-{draws.first[place] % 10_000}",
            "initial_bid": initial,
            "reserve": initial + round(draws.price[(place + 1) % BLOCK]),
            "at": now_ms,
            "expires": now_ms + 1_000 + draws.second[place] % 600_000,
            "seller": FIRST_ID + _recent(persons, _ACTIVE_PERSONS, draws.second[place]),
            "category": 10 + draws.first[place] % 5,
        }


class NexmarkBids(_Nexmark):
    """Offers; half of them for the newest auction of a hundred."""

    topic = "nexmark-bids"

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one bid, of a person and for an auction that were there before."""
        persons = number // _BIDS_PER_PERSON + 1
        auctions = persons * _AUCTIONS_PER_PERSON
        hot = (auctions - 1) // _ACTIVE_AUCTIONS * _ACTIVE_AUCTIONS
        cold = _recent(auctions, _ACTIVE_AUCTIONS, draws.first[place])
        channel = _CHANNELS[draws.first[place] % len(_CHANNELS)]
        return {
            "id": f"{self.seed}-{number}",
            "auction": FIRST_ID + (hot if draws.share[place] < 0.5 else cold),
            "bidder": FIRST_ID + _recent(persons, _ACTIVE_PERSONS, draws.second[place]),
            "price": round(draws.price[place]),
            "channel": channel,
            "url": _page(draws.second[place], named=channel == _NAMED_IN_URL),
            "at": now_ms,
        }


def _page(draw: int, *, named: bool) -> str:
    """Return the address of a page in three folders; some say which channel led there."""
    folders = "/".join(
        f"{name}{draw // size % 20}" for name, size in (("hall", 1), ("room", 20), ("shelf", 400))
    )
    sent_by = f"&channel_id={draw % 997}" if named else ""
    return f"https://auctions.example.com/{folders}/item.html?query=1{sent_by}"


def _recent(number: int, active: int, draw: int) -> int:
    """Return one of the last `active` of so many."""
    return number - 1 - draw % min(number, active)
