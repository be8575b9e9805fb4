"""Clicks on a website, in sessions with pauses between them."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

# Visitors come through so many places at a time; a place is empty for a while between two visitors.
_VISITOR_SLOTS = 200
_PAGES = ("home", "search", "product", "cart", "checkout", "help")
_PAGE_PROBABILITIES = (0.2, 0.25, 0.35, 0.1, 0.04, 0.06)
_USER_AGENTS = ("Firefox", "Chrome", "Safari", "Edge")


class _ClickDraws(NamedTuple):
    visitors: list[int]
    pages: list[int]
    products: list[int]
    delays: list[int]


class ClickGenerator(SeededGenerator[_ClickDraws]):
    """Clicks; a session lasts one to four blocks of records, and is followed by a pause about as long.

    `session` tells the truth, for judging a session window.
    """

    topic = "clicks"

    def draw_block(self, block: int, rng: np.random.Generator) -> _ClickDraws:
        """Draw who is there in this block, and what they look at."""
        present_visitors = np.array(
            [
                visitor
                for visitor in (_visitor_in_slot(slot, block) for slot in range(_VISITOR_SLOTS))
                if visitor >= 0
            ]
        )
        return _ClickDraws(
            rng.choice(present_visitors, BLOCK_RECORDS).tolist(),
            rng.choice(len(_PAGES), BLOCK_RECORDS, p=_PAGE_PROBABILITIES).tolist(),
            rng.integers(0, 500, BLOCK_RECORDS).tolist(),
            rng.integers(0, 1_500, BLOCK_RECORDS).tolist(),
        )

    def make_fields(self, number: int, now_ms: int, draws: _ClickDraws, index: int) -> dict[str, Any]:
        """Return one click."""
        visitor, page = draws.visitors[index], _PAGES[draws.pages[index]]
        return {
            "id": f"{self.seed}-{number}",
            "user": f"user-{visitor * 7_919 % 10_000:04d}",
            "session": f"{self.seed}-{visitor}",
            "at": now_ms - draws.delays[index],
            "page": f"/product/{draws.products[index]}" if page == "product" else f"/{page}",
            "action": {"cart": "add", "checkout": "buy", "search": "search"}.get(page, "view"),
            "agent": _USER_AGENTS[visitor % len(_USER_AGENTS)],
        }


def _visitor_in_slot(slot: int, block: int) -> int:
    """Return who is in a place during a block, counted over all time, or -1 for nobody."""
    visit_blocks = 1 + slot % 4
    turn, within = divmod(block + slot % (2 * visit_blocks), 2 * visit_blocks)
    return turn * _VISITOR_SLOTS + slot if within < visit_blocks else -1
