"""Questions to a search engine, of which some are suddenly asked by everybody, or by nobody."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK, randomness
from penstock.ingestion.generators.seeded import Seeded

USUAL = ("weather", "news", "maps", "translate", "recipes", "train times", "football", "exchange rate")
"""What is asked all the time, each as often as the others."""
_RARE = tuple(
    f"{what} {where}" for what in ("hotel", "museum", "cinema", "dentist") for where in range(1, 51)
)
_SHARE, _FOLD = 0.08, 4.0
_FIRST, _EVERY = 6, 4
_LANGUAGES = ("en", "de", "es", "pt")


@dataclass(frozen=True)
class Planted:
    """What is unusual in a block of a thousand records: one query that is asked by everybody, or by nobody."""

    query: str
    trend: Literal["spike", "dip"]


class _Draws(NamedTuple):
    queries: list[int]
    delays: list[int]
    languages: list[int]


class Queries(Seeded[_Draws]):
    """Questions; from the seventh block on every fourth has a trend in it, unless it is to be `calm`.

    One in a hundred comes later than the contract's bound.
    """

    topic = "queries"

    def __init__(self, seed: int = 0, *, calm: bool = False) -> None:
        super().__init__(seed)
        self._calm = calm

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw what is asked in this block, by how much each query is asked in it."""
        found = None if self._calm else planted(self.seed, block)
        weights = np.array([_SHARE] * len(USUAL) + [(1 - _SHARE * len(USUAL)) / len(_RARE)] * len(_RARE))
        if found is not None:
            share = _SHARE * _FOLD if found.trend == "spike" else 0.0
            place = USUAL.index(found.query)
            weights *= (1 - share) / (1 - _SHARE)
            weights[place] = share
        kind = source.random(BLOCK)
        prompt, slow = source.integers(0, 800, BLOCK), source.integers(0, self.contract.bound_ms, BLOCK)
        delays = np.where(kind < 0.9, prompt, np.where(kind < 0.99, slow, slow + self.contract.bound_ms))
        return _Draws(
            source.choice(len(weights), BLOCK, p=weights).tolist(),
            delays.tolist(),
            source.integers(0, len(_LANGUAGES), BLOCK).tolist(),
        )

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one question."""
        return {
            "id": f"{self.seed}-{number}",
            "query": (*USUAL, *_RARE)[draws.queries[place]],
            "at": now_ms - draws.delays[place],
            "language": _LANGUAGES[draws.languages[place]],
        }


def planted(seed: int, block: int) -> Planted | None:
    """Return the trend of a block, the truth by which a detector is judged; None for one without."""
    turn, rest = divmod(block - _FIRST, _EVERY)
    if turn < 0 or rest:
        return None
    query = USUAL[int(randomness("trends", seed, block).integers(0, len(USUAL)))]
    return Planted(query, "dip" if turn % 2 else "spike")
