"""Card transactions with fraud by rings.

A ring has stolen cards and its own merchants. When it strikes, its cards pay at its merchants in quick succession:
first small amounts, to test the cards, then large ones.
"""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

_CARD_COUNT, _MERCHANT_COUNT = 5_000, 400
_RING_COUNT, _CARDS_PER_RING, _MERCHANTS_PER_RING = 12, 15, 3
_STRIKE_TRANSACTIONS = 40
_CATEGORIES = ("grocery", "fuel", "travel", "electronics", "restaurant", "clothing")
_COUNTRIES = ("DE", "FR", "GB", "IT", "PL", "US")


class _CardDraws(NamedTuple):
    cards: list[int]
    merchants: list[int]
    amounts: list[float]
    online: list[bool]
    delays: list[int]
    ring: int | None
    strikes: dict[int, int]


class CardGenerator(SeededGenerator[_CardDraws]):
    """Card transactions; a ring strikes in about every third block. `ring` is the ground truth."""

    topic = "cards"

    def draw_block(self, block: int, rng: np.random.Generator) -> _CardDraws:
        """Draw honest transactions, and the positions of a ring's transactions among them."""
        cards = rng.integers(0, _CARD_COUNT, BLOCK_RECORDS)
        merchants = rng.zipf(1.3, BLOCK_RECORDS) % _MERCHANT_COUNT
        amounts = rng.lognormal(3.2, 1.0, BLOCK_RECORDS)
        online = rng.random(BLOCK_RECORDS) < 0.3
        delays = rng.integers(0, 2_000, BLOCK_RECORDS)
        ring = int(rng.integers(0, _RING_COUNT)) if rng.random() < 0.35 else None
        start = int(rng.integers(0, BLOCK_RECORDS - 5 * _STRIKE_TRANSACTIONS))
        strike_indexes = np.sort(
            rng.choice(
                np.arange(start, start + 5 * _STRIKE_TRANSACTIONS), _STRIKE_TRANSACTIONS, replace=False
            )
        )
        strikes = {} if ring is None else {index: turn for turn, index in enumerate(strike_indexes.tolist())}
        return _CardDraws(
            cards.tolist(),
            merchants.tolist(),
            amounts.tolist(),
            online.tolist(),
            delays.tolist(),
            ring,
            strikes,
        )

    def make_fields(self, number: int, now_ms: int, draws: _CardDraws, index: int) -> dict[str, Any]:
        """Return one transaction."""
        card, merchant, amount = draws.cards[index], draws.merchants[index], draws.amounts[index]
        turn = draws.strikes.get(index)
        if turn is not None and draws.ring is not None:
            card = (draws.ring * 401 + turn % _CARDS_PER_RING * 17) % _CARD_COUNT
            merchant = (draws.ring * _MERCHANTS_PER_RING + turn % _MERCHANTS_PER_RING) % _MERCHANT_COUNT
            amount = 1 + amount / 100 if turn < _CARDS_PER_RING else 300 + 10 * amount
        return {
            "id": f"{self.seed}-{number}",
            "card": f"card-{card:05d}",
            "at": now_ms - draws.delays[index],
            "amount": round(amount, 2),
            "merchant": f"merchant-{merchant:03d}",
            "category": _CATEGORIES[merchant % len(_CATEGORIES)],
            "country": _COUNTRIES[(card if turn is None else card + 3) % len(_COUNTRIES)],
            "online": draws.online[index] or turn is not None,
            "ring": None if turn is None else f"ring-{draws.ring}",
        }
