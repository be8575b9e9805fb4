"""Device readings with a daily wave, noise, failed probes and late arrivals."""

import math
from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

_DAY_MS = 86_400_000


class _SensorDraws(NamedTuple):
    devices: list[int]
    delays: list[int]
    noise: list[float]
    failed: list[bool]


class SensorGenerator(SeededGenerator[_SensorDraws]):
    """Readings of `device_count` devices; about one in a hundred arrives beyond the max out-of-orderness.

    Nine in ten are sent within half a second of their event time, the rest seconds later. The share `late_share` is
    delayed beyond the max out-of-orderness of the contract, up to `max_delay_ms`.
    """

    topic = "sensors"

    def __init__(
        self, seed: int = 0, device_count: int = 20, late_share: float = 0.01, max_delay_ms: int = 60_000
    ) -> None:
        super().__init__(seed)
        self._late_share = late_share
        self._max_delay_ms = max_delay_ms
        self._device_names = [f"device-{number:04d}" for number in range(device_count)]
        self._sites = [f"site-{number % 4}" for number in range(device_count)]

    def draw_block(self, block: int, rng: np.random.Generator) -> _SensorDraws:
        """Draw the device, delay, noise and probe failure of each reading."""
        devices = rng.integers(0, len(self._device_names), BLOCK_RECORDS)
        kind = rng.random(BLOCK_RECORDS)
        max_timely_ms = self.contract.max_out_of_orderness_ms
        prompt, slow = rng.integers(0, 500, BLOCK_RECORDS), rng.integers(500, max_timely_ms, BLOCK_RECORDS)
        late = rng.integers(max_timely_ms, self._max_delay_ms, BLOCK_RECORDS)
        delays = np.where(kind < 0.9, prompt, np.where(kind > 1 - self._late_share, late, slow))
        noise = rng.normal(0.0, 0.4, BLOCK_RECORDS)
        failed = rng.random(BLOCK_RECORDS) < 0.01
        return _SensorDraws(devices.tolist(), delays.tolist(), noise.tolist(), failed.tolist())

    def make_fields(self, number: int, now_ms: int, draws: _SensorDraws, index: int) -> dict[str, Any]:
        """Return one reading."""
        device, at = draws.devices[index], now_ms - draws.delays[index]
        temperature = (
            14 + device % 7 + 6 * math.sin(2 * math.pi * (at % _DAY_MS) / _DAY_MS) + draws.noise[index]
        )
        return {
            "id": f"{self.seed}-{number}",
            "device": self._device_names[device],
            "site": self._sites[device],
            "at": at,
            "temperature": None if draws.failed[index] else round(temperature, 2),
            "humidity": round(80 - 1.5 * temperature, 1) if device % 2 == 0 else None,
        }
