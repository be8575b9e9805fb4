"""Lines of text with a few common words and a trend word that changes."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

_COMMON_WORDS = (
    "the",
    "river",
    "runs",
    "to",
    "sea",
    "and",
    "no",
    "one",
    "has",
    "seen",
    "it",
    "turn",
    "back",
    "again",
)
_TREND_WORDS = ("flood", "bridge", "ferry", "harvest", "election", "comet")
_WORDS_PER_LINE = 7
_LINES_PER_TREND = 40
_MAX_DELAY_MS = 30_000


class _LineDraws(NamedTuple):
    words: list[list[int]]
    trend_chances: list[float]
    delays: list[int]


class LineGenerator(SeededGenerator[_LineDraws]):
    """Lines of seven words; the trend changes every forty lines; 6 % are beyond the max out-of-orderness."""

    topic = "lines"

    def draw_block(self, block: int, rng: np.random.Generator) -> _LineDraws:
        """Draw the words of each line, and its delay."""
        is_late = rng.random(BLOCK_RECORDS) < 0.06
        max_timely_ms = self.contract.max_out_of_orderness_ms
        timely, late = (
            rng.integers(0, max_timely_ms, BLOCK_RECORDS),
            rng.integers(max_timely_ms, _MAX_DELAY_MS, BLOCK_RECORDS),
        )
        return _LineDraws(
            ((rng.zipf(1.4, (BLOCK_RECORDS, _WORDS_PER_LINE)) - 1) % len(_COMMON_WORDS)).tolist(),
            rng.random(BLOCK_RECORDS).tolist(),
            np.where(is_late, late, timely).tolist(),
        )

    def make_fields(self, number: int, now_ms: int, draws: _LineDraws, index: int) -> dict[str, Any]:
        """Return one line."""
        words = [_COMMON_WORDS[word_index] for word_index in draws.words[index]]
        if draws.trend_chances[index] < 0.6:
            words[-1] = _TREND_WORDS[number // _LINES_PER_TREND % len(_TREND_WORDS)]
        return {"at": now_ms - draws.delays[index], "text": " ".join(words)}
