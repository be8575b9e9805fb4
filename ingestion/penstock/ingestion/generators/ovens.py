"""Ovens that bake: each heats up, holds, cools down, and says when the run is over."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

OVENS = 5
_SHORTEST = 12
_RECIPES = ("bread", "rolls", "pastry")
_WARM, _HOT = 40.0, 220.0


class _Draws(NamedTuple):
    noise: list[float]


class Ovens(Seeded[_Draws]):
    """Readings in turn of each oven; its runs are of one length, which is not that of the other ovens."""

    topic = "ovens"

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw what the thermometer is off."""
        return _Draws(source.normal(0.0, 1.5, BLOCK).tolist())

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one reading."""
        turn, oven = divmod(number, OVENS)
        length = _SHORTEST + 3 * oven
        run, at = divmod(turn, length)
        share = at / (length - 1)
        phase = "end" if at == length - 1 else "heat" if share < 0.3 else "hold" if share < 0.75 else "cool"
        warmth = min(share / 0.3, 1.0, max((1 - share) / 0.25, 0.0))
        return {
            "id": f"{self.seed}-{number}",
            "oven": f"oven-{oven}",
            "at": now_ms,
            "phase": phase,
            "recipe": _RECIPES[(run + oven + self.seed) % len(_RECIPES)],
            "temperature": round(_WARM + (_HOT - _WARM) * warmth + draws.noise[place], 1),
        }
