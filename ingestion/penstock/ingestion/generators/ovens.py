"""Ovens that bake: each heats up, holds, cools down, and reports the end of its run."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

OVEN_COUNT = 5
_MIN_RUN_READINGS = 12
_RECIPES = ("bread", "rolls", "pastry")
_IDLE_CELSIUS, _BAKING_CELSIUS = 40.0, 220.0


class _OvenDraws(NamedTuple):
    noise: list[float]


class OvenGenerator(SeededGenerator[_OvenDraws]):
    """Readings of all ovens in turn. Each oven has runs of its own constant length."""

    topic = "ovens"

    def draw_block(self, block: int, rng: np.random.Generator) -> _OvenDraws:
        """Draw the measurement noise."""
        return _OvenDraws(rng.normal(0.0, 1.5, BLOCK_RECORDS).tolist())

    def make_fields(self, number: int, now_ms: int, draws: _OvenDraws, index: int) -> dict[str, Any]:
        """Return one reading."""
        turn, oven = divmod(number, OVEN_COUNT)
        run_readings = _MIN_RUN_READINGS + 3 * oven
        run, reading_index = divmod(turn, run_readings)
        share = reading_index / (run_readings - 1)
        phase = (
            "end"
            if reading_index == run_readings - 1
            else "heat"
            if share < 0.3
            else "hold"
            if share < 0.75
            else "cool"
        )
        warmth = min(share / 0.3, 1.0, max((1 - share) / 0.25, 0.0))
        return {
            "id": f"{self.seed}-{number}",
            "oven": f"oven-{oven}",
            "at": now_ms,
            "phase": phase,
            "recipe": _RECIPES[(run + oven + self.seed) % len(_RECIPES)],
            "temperature": round(
                _IDLE_CELSIUS + (_BAKING_CELSIUS - _IDLE_CELSIUS) * warmth + draws.noise[index], 1
            ),
        }
