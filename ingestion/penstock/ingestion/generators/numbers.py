"""Numbers by key, each key with its own mean."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

_KEYS = ("a", "b", "c")


class _NumberDraws(NamedTuple):
    keys: list[int]
    values: list[float]


class NumberGenerator(SeededGenerator[_NumberDraws]):
    """Numbers with three keys and the means 10, 20 and 30."""

    topic = "avg"

    def draw_block(self, block: int, rng: np.random.Generator) -> _NumberDraws:
        """Draw the keys, and the deviations from their means."""
        return _NumberDraws(
            rng.integers(0, len(_KEYS), BLOCK_RECORDS).tolist(), rng.normal(0.0, 3.0, BLOCK_RECORDS).tolist()
        )

    def make_fields(self, number: int, now_ms: int, draws: _NumberDraws, index: int) -> dict[str, Any]:
        """Return one number."""
        key = draws.keys[index]
        return {"key": _KEYS[key], "value": round(10 * (key + 1) + draws.values[index], 2), "at": now_ms}
