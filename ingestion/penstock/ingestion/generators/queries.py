"""Search engine queries with planted trends: a common query suddenly spikes or disappears."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS, create_block_rng
from penstock.ingestion.generators.seeded_generator import SeededGenerator

COMMON_QUERIES = (
    "weather",
    "news",
    "maps",
    "translate",
    "recipes",
    "train times",
    "football",
    "exchange rate",
)
"""Queries that are always common, each with the same share."""
_RARE_QUERIES = tuple(
    f"{what} {where}" for what in ("hotel", "museum", "cinema", "dentist") for where in range(1, 51)
)
_COMMON_QUERY_SHARE, _SPIKE_FACTOR = 0.08, 4.0
_FIRST_TREND_BLOCK, _TREND_INTERVAL_BLOCKS = 6, 4
_LANGUAGES = ("en", "de", "es", "pt")


@dataclass(frozen=True)
class PlantedTrend:
    """The trend in a block of a thousand records: the spike or dip of one query."""

    query: str
    trend: Literal["spike", "dip"]


class _QueryDraws(NamedTuple):
    queries: list[int]
    delays: list[int]
    languages: list[int]


class QueryGenerator(SeededGenerator[_QueryDraws]):
    """Queries; from the seventh block on, every fourth block has a trend, unless `calm` is set.

    One record in a hundred arrives beyond the max out-of-orderness of the contract.
    """

    topic = "queries"

    def __init__(self, seed: int = 0, *, calm: bool = False) -> None:
        super().__init__(seed)
        self._calm = calm

    def draw_block(self, block: int, rng: np.random.Generator) -> _QueryDraws:
        """Draw the queries of this block by their shares."""
        trend = None if self._calm else find_planted_trend(self.seed, block)
        weights = np.array(
            [_COMMON_QUERY_SHARE] * len(COMMON_QUERIES)
            + [(1 - _COMMON_QUERY_SHARE * len(COMMON_QUERIES)) / len(_RARE_QUERIES)] * len(_RARE_QUERIES)
        )
        if trend is not None:
            share = _COMMON_QUERY_SHARE * _SPIKE_FACTOR if trend.trend == "spike" else 0.0
            query_index = COMMON_QUERIES.index(trend.query)
            weights *= (1 - share) / (1 - _COMMON_QUERY_SHARE)
            weights[query_index] = share
        kind = rng.random(BLOCK_RECORDS)
        prompt, slow = (
            rng.integers(0, 800, BLOCK_RECORDS),
            rng.integers(0, self.contract.max_out_of_orderness_ms, BLOCK_RECORDS),
        )
        delays = np.where(
            kind < 0.9, prompt, np.where(kind < 0.99, slow, slow + self.contract.max_out_of_orderness_ms)
        )
        return _QueryDraws(
            rng.choice(len(weights), BLOCK_RECORDS, p=weights).tolist(),
            delays.tolist(),
            rng.integers(0, len(_LANGUAGES), BLOCK_RECORDS).tolist(),
        )

    def make_fields(self, number: int, now_ms: int, draws: _QueryDraws, index: int) -> dict[str, Any]:
        """Return one query."""
        return {
            "id": f"{self.seed}-{number}",
            "query": (*COMMON_QUERIES, *_RARE_QUERIES)[draws.queries[index]],
            "at": now_ms - draws.delays[index],
            "language": _LANGUAGES[draws.languages[index]],
        }


def find_planted_trend(seed: int, block: int) -> PlantedTrend | None:
    """Return the planted trend of a block, which is the ground truth for trend detectors, or None."""
    turn, rest = divmod(block - _FIRST_TREND_BLOCK, _TREND_INTERVAL_BLOCKS)
    if turn < 0 or rest:
        return None
    query = COMMON_QUERIES[int(create_block_rng("trends", seed, block).integers(0, len(COMMON_QUERIES)))]
    return PlantedTrend(query, "dip" if turn % 2 else "spike")
