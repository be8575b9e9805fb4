"""Clicks on a website, in sessions with pauses between them."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

# Visitors come through so many places at a time; a place is empty for a while between two visitors.
_PLACES = 200
_PAGES = ("home", "search", "product", "cart", "checkout", "help")
_LIKELY = (0.2, 0.25, 0.35, 0.1, 0.04, 0.06)
_AGENTS = ("Firefox", "Chrome", "Safari", "Edge")


class _Draws(NamedTuple):
    visitors: list[int]
    pages: list[int]
    products: list[int]
    delays: list[int]


class Clicks(Seeded[_Draws]):
    """Clicks; a session lasts one to four blocks of records, and is followed by a pause about as long.

    `session` tells the truth, for judging a session window.
    """

    topic = "clicks"

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw who is there in this block, and what they look at."""
        present = np.array(
            [visitor for visitor in (_visitor(place, block) for place in range(_PLACES)) if visitor >= 0]
        )
        return _Draws(
            source.choice(present, BLOCK).tolist(),
            source.choice(len(_PAGES), BLOCK, p=_LIKELY).tolist(),
            source.integers(0, 500, BLOCK).tolist(),
            source.integers(0, 1_500, BLOCK).tolist(),
        )

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one click."""
        visitor, page = draws.visitors[place], _PAGES[draws.pages[place]]
        return {
            "id": f"{self.seed}-{number}",
            "user": f"user-{visitor * 7_919 % 10_000:04d}",
            "session": f"{self.seed}-{visitor}",
            "at": now_ms - draws.delays[place],
            "page": f"/product/{draws.products[place]}" if page == "product" else f"/{page}",
            "action": {"cart": "add", "checkout": "buy", "search": "search"}.get(page, "view"),
            "agent": _AGENTS[visitor % len(_AGENTS)],
        }


def _visitor(place: int, block: int) -> int:
    """Return who is in a place during a block, counted over all time, or -1 for nobody."""
    stay = 1 + place % 4
    turn, within = divmod(block + place % (2 * stay), 2 * stay)
    return turn * _PLACES + place if within < stay else -1
