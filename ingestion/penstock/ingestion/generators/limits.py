"""Limits of cards, which change now and then."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

_CARDS = 5_000
_LIMITS = (50.0, 100.0, 250.0, 1_000.0)


class _Draws(NamedTuple):
    cards: list[int]
    limits: list[int]
    delays: list[int]


class CardLimits(Seeded[_Draws]):
    """Changes of limits, of the cards that pay in `Cards`."""

    topic = "card-limits"

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw whose limit changes, and to what."""
        return _Draws(
            source.integers(0, _CARDS, BLOCK).tolist(),
            source.integers(0, len(_LIMITS), BLOCK).tolist(),
            source.integers(0, 2_000, BLOCK).tolist(),
        )

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one change."""
        return {
            "id": f"{self.seed}-{number}",
            "card": f"card-{draws.cards[place]:05d}",
            "at": now_ms - draws.delays[place],
            "most": _LIMITS[draws.limits[place]],
        }
