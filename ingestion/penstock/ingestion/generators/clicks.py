"""Clicks on a website, in sessions with pauses."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

# Visitors at the same time. After each visitor, a slot stays empty for a while.
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
    """Clicks in sessions of one to four blocks; the pause after a session is about as long.

    `session` is the ground truth for session windows.
    """

    topic = "clicks"

    def draw_block(self, block: int, rng: np.random.Generator) -> _ClickDraws:
        """Draw the visitors of this block and the pages that they click."""
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
    """Return the number of the visitor in a slot during a block, or -1 if the slot is empty."""
    visit_blocks = 1 + slot % 4
    turn, within = divmod(block + slot % (2 * visit_blocks), 2 * visit_blocks)
    return turn * _VISITOR_SLOTS + slot if within < visit_blocks else -1
