"""Advertisements that are shown, and the clicks on some of them, after seconds or minutes.

A click refers to a showing before it in the order of numbers, so feeds whose rates stand as 1 : 5 fit together.
"""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

IMPRESSIONS_PER_CLICK = 5
_ADS = tuple(f"ad-{number:02d}" for number in range(20))
_PAGES = ("home", "news", "sport", "weather")
# Showings between one and its click, by turns. As multiples of 40 they make no two clicks fall on one showing.
_CLICK_LAG_IMPRESSIONS = (40, 200, 400, 800, 1_600, 2_400, 4_000, 40)


class _AdvertisingDraws(NamedTuple):
    ads: list[int]
    pages: list[int]
    delays: list[int]


class _AdvertisingGenerator(SeededGenerator[_AdvertisingDraws]):
    def draw_block(self, block: int, rng: np.random.Generator) -> _AdvertisingDraws:
        """Draw what either of the two needs."""
        return _AdvertisingDraws(
            ((rng.zipf(1.5, BLOCK_RECORDS) - 1) % len(_ADS)).tolist(),
            rng.integers(0, len(_PAGES), BLOCK_RECORDS).tolist(),
            rng.integers(0, 2_000, BLOCK_RECORDS).tolist(),
        )


class ImpressionGenerator(_AdvertisingGenerator):
    """Showings of advertisements; a few of these are shown most."""

    topic = "impressions"

    def make_fields(self, number: int, now_ms: int, draws: _AdvertisingDraws, index: int) -> dict[str, Any]:
        """Return one showing."""
        return {
            "id": f"{self.seed}-{number}",
            "ad": _ADS[draws.ads[index]],
            "page": _PAGES[draws.pages[index]],
            "at": now_ms - draws.delays[index],
        }


class AdClickGenerator(_AdvertisingGenerator):
    """Clicks on showings of the same seed; the first ones are on showings that nobody knows of."""

    topic = "ad-clicks"

    def make_fields(self, number: int, now_ms: int, draws: _AdvertisingDraws, index: int) -> dict[str, Any]:
        """Return one click."""
        impression = (
            IMPRESSIONS_PER_CLICK * number - _CLICK_LAG_IMPRESSIONS[number % len(_CLICK_LAG_IMPRESSIONS)]
        )
        return {
            "id": f"{self.seed}-{number}",
            "impression": f"{self.seed}-{impression}",
            "at": now_ms - draws.delays[index],
        }
