"""Changes of card limits."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

_CARD_COUNT = 5_000
_LIMIT_AMOUNTS = (50.0, 100.0, 250.0, 1_000.0)


class _CardLimitDraws(NamedTuple):
    cards: list[int]
    limits: list[int]
    delays: list[int]


class CardLimitGenerator(SeededGenerator[_CardLimitDraws]):
    """Limit changes of the cards that `CardGenerator` uses."""

    topic = "card-limits"

    def draw_block(self, block: int, rng: np.random.Generator) -> _CardLimitDraws:
        """Draw the cards and their new limits."""
        return _CardLimitDraws(
            rng.integers(0, _CARD_COUNT, BLOCK_RECORDS).tolist(),
            rng.integers(0, len(_LIMIT_AMOUNTS), BLOCK_RECORDS).tolist(),
            rng.integers(0, 2_000, BLOCK_RECORDS).tolist(),
        )

    def make_fields(self, number: int, now_ms: int, draws: _CardLimitDraws, index: int) -> dict[str, Any]:
        """Return one limit change."""
        return {
            "id": f"{self.seed}-{number}",
            "card": f"card-{draws.cards[index]:05d}",
            "at": now_ms - draws.delays[index],
            "most": _LIMIT_AMOUNTS[draws.limits[index]],
        }
