"""Card transactions, and rings of fraud among them.

A ring has stolen cards and merchants of its own. When it works, its cards buy at its merchants in quick succession:
a small amount first, to see whether the card is good, then large ones.
"""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

_CARDS, _MERCHANTS = 5_000, 400
_RINGS, _RING_CARDS, _RING_MERCHANTS = 12, 15, 3
_STRIKE = 40
_CATEGORIES = ("grocery", "fuel", "travel", "electronics", "restaurant", "clothing")
_COUNTRIES = ("DE", "FR", "GB", "IT", "PL", "US")


class _Draws(NamedTuple):
    cards: list[int]
    merchants: list[int]
    amounts: list[float]
    online: list[bool]
    delays: list[int]
    ring: int | None
    strikes: dict[int, int]


class Cards(Seeded[_Draws]):
    """Transactions; in every third block or so one ring strikes. `ring` tells the truth, for judging a detector."""

    topic = "cards"

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw honest transactions, and the places of a ring's among them."""
        cards = source.integers(0, _CARDS, BLOCK)
        merchants = source.zipf(1.3, BLOCK) % _MERCHANTS
        amounts = source.lognormal(3.2, 1.0, BLOCK)
        online = source.random(BLOCK) < 0.3
        delays = source.integers(0, 2_000, BLOCK)
        ring = int(source.integers(0, _RINGS)) if source.random() < 0.35 else None
        begin = int(source.integers(0, BLOCK - 5 * _STRIKE))
        places = np.sort(source.choice(np.arange(begin, begin + 5 * _STRIKE), _STRIKE, replace=False))
        strikes = {} if ring is None else {place: turn for turn, place in enumerate(places.tolist())}
        return _Draws(
            cards.tolist(),
            merchants.tolist(),
            amounts.tolist(),
            online.tolist(),
            delays.tolist(),
            ring,
            strikes,
        )

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one transaction."""
        card, merchant, amount = draws.cards[place], draws.merchants[place], draws.amounts[place]
        turn = draws.strikes.get(place)
        if turn is not None and draws.ring is not None:
            card = (draws.ring * 401 + turn % _RING_CARDS * 17) % _CARDS
            merchant = (draws.ring * _RING_MERCHANTS + turn % _RING_MERCHANTS) % _MERCHANTS
            amount = 1 + amount / 100 if turn < _RING_CARDS else 300 + 10 * amount
        return {
            "id": f"{self.seed}-{number}",
            "card": f"card-{card:05d}",
            "at": now_ms - draws.delays[place],
            "amount": round(amount, 2),
            "merchant": f"merchant-{merchant:03d}",
            "category": _CATEGORIES[merchant % len(_CATEGORIES)],
            "country": _COUNTRIES[(card if turn is None else card + 3) % len(_COUNTRIES)],
            "online": draws.online[place] or turn is not None,
            "ring": None if turn is None else f"ring-{draws.ring}",
        }
