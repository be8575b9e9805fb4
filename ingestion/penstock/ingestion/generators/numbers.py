"""Numbers by key, each key around a mean of its own."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

_KEYS = ("a", "b", "c")


class _Draws(NamedTuple):
    keys: list[int]
    values: list[float]


class Numbers(Seeded[_Draws]):
    """Numbers of three keys, around 10, 20 and 30."""

    topic = "avg"

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw keys, and what their numbers are off."""
        return _Draws(source.integers(0, len(_KEYS), BLOCK).tolist(), source.normal(0.0, 3.0, BLOCK).tolist())

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one number."""
        key = draws.keys[place]
        return {"key": _KEYS[key], "value": round(10 * (key + 1) + draws.values[place], 2), "at": now_ms}
