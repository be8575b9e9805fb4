"""Advertisements that are shown, and the clicks on some of them, after seconds or minutes.

A click refers to a showing before it in the order of numbers, so feeds whose rates stand as 1 : 5 fit together.
"""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

SHOWN_PER_CLICK = 5
_ADS = tuple(f"ad-{number:02d}" for number in range(20))
_PAGES = ("home", "news", "sport", "weather")
# Showings between one and its click, by turns. As multiples of 40 they make no two clicks fall on one showing.
_BEFORE = (40, 200, 400, 800, 1_600, 2_400, 4_000, 40)


class _Draws(NamedTuple):
    ads: list[int]
    pages: list[int]
    delays: list[int]


class _Advertising(Seeded[_Draws]):
    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw what either of the two needs."""
        return _Draws(
            ((source.zipf(1.5, BLOCK) - 1) % len(_ADS)).tolist(),
            source.integers(0, len(_PAGES), BLOCK).tolist(),
            source.integers(0, 2_000, BLOCK).tolist(),
        )


class Impressions(_Advertising):
    """Showings of advertisements; a few of these are shown most."""

    topic = "impressions"

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one showing."""
        return {
            "id": f"{self.seed}-{number}",
            "ad": _ADS[draws.ads[place]],
            "page": _PAGES[draws.pages[place]],
            "at": now_ms - draws.delays[place],
        }


class AdClicks(_Advertising):
    """Clicks on showings of the same seed; the first ones are on showings that nobody knows of."""

    topic = "ad-clicks"

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one click."""
        shown = SHOWN_PER_CLICK * number - _BEFORE[number % len(_BEFORE)]
        return {
            "id": f"{self.seed}-{number}",
            "impression": f"{self.seed}-{shown}",
            "at": now_ms - draws.delays[place],
        }
