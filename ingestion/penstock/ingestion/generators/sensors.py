"""Readings of devices: a daily wave, noise, probes that fail, and readings that arrive late."""

import math
from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

_DAY_MS = 86_400_000


class _Draws(NamedTuple):
    devices: list[int]
    delays: list[int]
    noise: list[float]
    failed: list[bool]


class Sensors(Seeded[_Draws]):
    """Readings of `devices` devices; about one in a hundred comes later than the contract's bound.

    Nine readings in ten are sent within half a second of being made, the rest after a delay of seconds, and
    `late` of them after more than the bound, up to `latest_ms`.
    """

    topic = "sensors"

    def __init__(self, seed: int = 0, devices: int = 20, late: float = 0.01, latest_ms: int = 60_000) -> None:
        super().__init__(seed)
        self._late = late
        self._latest_ms = latest_ms
        self._names = [f"device-{number:04d}" for number in range(devices)]
        self._sites = [f"site-{number % 4}" for number in range(devices)]

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw device, delay, noise and failure of each reading."""
        devices = source.integers(0, len(self._names), BLOCK)
        kind = source.random(BLOCK)
        bound = self.contract.bound_ms
        prompt, slow = source.integers(0, 500, BLOCK), source.integers(500, bound, BLOCK)
        beyond = source.integers(bound, self._latest_ms, BLOCK)
        delays = np.where(kind < 0.9, prompt, np.where(kind > 1 - self._late, beyond, slow))
        noise = source.normal(0.0, 0.4, BLOCK)
        failed = source.random(BLOCK) < 0.01
        return _Draws(devices.tolist(), delays.tolist(), noise.tolist(), failed.tolist())

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one reading."""
        device, at = draws.devices[place], now_ms - draws.delays[place]
        warmth = 14 + device % 7 + 6 * math.sin(2 * math.pi * (at % _DAY_MS) / _DAY_MS) + draws.noise[place]
        return {
            "id": f"{self.seed}-{number}",
            "device": self._names[device],
            "site": self._sites[device],
            "at": at,
            "temperature": None if draws.failed[place] else round(warmth, 2),
            "humidity": round(80 - 1.5 * warmth, 1) if device % 2 == 0 else None,
        }
