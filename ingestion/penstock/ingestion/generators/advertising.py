"""Impressions of advertisements, and clicks on some of them seconds or minutes later.

Each click refers to an earlier impression by its number. Feeds whose rates have the ratio 1 : 5 match each other.
"""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

IMPRESSIONS_PER_CLICK = 5
_ADS = tuple(f"ad-{number:02d}" for number in range(20))
_PAGES = ("home", "news", "sport", "weather")
# Impressions between an impression and its click, in rotation. With multiples of 40 no impression is clicked twice.
_CLICK_LAG_IMPRESSIONS = (40, 200, 400, 800, 1_600, 2_400, 4_000, 40)


class _AdvertisingDraws(NamedTuple):
    ads: list[int]
    pages: list[int]
    delays: list[int]


class _AdvertisingGenerator(SeededGenerator[_AdvertisingDraws]):
    def draw_block(self, block: int, rng: np.random.Generator) -> _AdvertisingDraws:
        """Draw the values that both generators use."""
        return _AdvertisingDraws(
            ((rng.zipf(1.5, BLOCK_RECORDS) - 1) % len(_ADS)).tolist(),
            rng.integers(0, len(_PAGES), BLOCK_RECORDS).tolist(),
            rng.integers(0, 2_000, BLOCK_RECORDS).tolist(),
        )


class ImpressionGenerator(_AdvertisingGenerator):
    """Impressions of advertisements; a few advertisements are shown much more often than the others."""

    topic = "impressions"

    def make_fields(self, number: int, now_ms: int, draws: _AdvertisingDraws, index: int) -> dict[str, Any]:
        """Return one impression."""
        return {
            "id": f"{self.seed}-{number}",
            "ad": _ADS[draws.ads[index]],
            "page": _PAGES[draws.pages[index]],
            "at": now_ms - draws.delays[index],
        }


class AdClickGenerator(_AdvertisingGenerator):
    """Clicks on impressions of the same seed. The first clicks refer to impressions that do not exist."""

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
