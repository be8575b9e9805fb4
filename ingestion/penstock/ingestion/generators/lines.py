"""Lines of talk: a few words everywhere, many seldom, and some that are the talk of the moment."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

_COMMON = (
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
_TALK = ("flood", "bridge", "ferry", "harvest", "election", "comet")
_WORDS = 7
_TALK_OF = 40
_LATEST_MS = 30_000


class _Draws(NamedTuple):
    words: list[list[int]]
    talked: list[float]
    delays: list[int]


class Lines(Seeded[_Draws]):
    """Lines of seven words; what is talked of changes every forty lines. Six in a hundred come after the bound."""

    topic = "lines"

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw the words of each line, and how late it comes."""
        late = source.random(BLOCK) < 0.06
        bound = self.contract.bound_ms
        prompt, beyond = source.integers(0, bound, BLOCK), source.integers(bound, _LATEST_MS, BLOCK)
        return _Draws(
            ((source.zipf(1.4, (BLOCK, _WORDS)) - 1) % len(_COMMON)).tolist(),
            source.random(BLOCK).tolist(),
            np.where(late, beyond, prompt).tolist(),
        )

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one line."""
        words = [_COMMON[word] for word in draws.words[place]]
        if draws.talked[place] < 0.6:
            words[-1] = _TALK[number // _TALK_OF % len(_TALK)]
        return {"at": now_ms - draws.delays[place], "text": " ".join(words)}
