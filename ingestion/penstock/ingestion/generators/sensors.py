"""Readings of devices: a daily wave, noise, probes that fail, and readings that arrive late."""

import math
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import msgspec
import numpy as np

from penstock.ingestion.contracts import load_contract, record_type
from penstock.ingestion.generators.blocks import BLOCK, Times, randomness

_DAY_MS = 86_400_000


class _Draws(NamedTuple):
    devices: list[int]
    delays: list[int]
    noise: list[float]
    failed: list[bool]


class Sensors:
    """Readings of `devices` devices; about one in a hundred comes later than the contract's bound.

    Nine readings in ten are sent within half a second of being made, the rest after a delay of seconds, and
    `late` of them after more than the bound, up to `latest_ms`.
    """

    topic = "sensors"

    def __init__(self, seed: int = 0, devices: int = 20, late: float = 0.01, latest_ms: int = 60_000) -> None:
        self._seed = seed
        self._late = late
        self._latest_ms = latest_ms
        contract = load_contract(self.topic)
        self._bound_ms = contract.bound_ms
        self._record = record_type(contract)
        self._names = [f"device-{number:04d}" for number in range(devices)]
        self._sites = [f"site-{number % 4}" for number in range(devices)]

    @property
    def name(self) -> str:
        """What is generated, and from which seed."""
        return f"sensors, seed {self._seed}"

    def records(self, first: int, times: Times) -> Iterator[msgspec.Struct]:
        """Yield the readings from number `first` on."""
        for block in count(first // BLOCK):
            draws = self._draws(block)
            for place in range(first - block * BLOCK if block == first // BLOCK else 0, BLOCK):
                number = block * BLOCK + place
                yield self._reading(number, times(number), draws, place)

    def _draws(self, block: int) -> _Draws:
        source = randomness(self.topic, self._seed, block)
        devices = source.integers(0, len(self._names), BLOCK)
        kind = source.random(BLOCK)
        prompt, slow = source.integers(0, 500, BLOCK), source.integers(500, self._bound_ms, BLOCK)
        beyond = source.integers(self._bound_ms, self._latest_ms, BLOCK)
        delays = np.where(kind < 0.9, prompt, np.where(kind > 1 - self._late, beyond, slow))
        noise = source.normal(0.0, 0.4, BLOCK)
        failed = source.random(BLOCK) < 0.01
        return _Draws(devices.tolist(), delays.tolist(), noise.tolist(), failed.tolist())

    def _reading(self, number: int, now_ms: int, draws: _Draws, place: int) -> msgspec.Struct:
        device, at = draws.devices[place], now_ms - draws.delays[place]
        warmth = 14 + device % 7 + 6 * math.sin(2 * math.pi * (at % _DAY_MS) / _DAY_MS) + draws.noise[place]
        return self._record(
            id=f"{self._seed}-{number}",
            device=self._names[device],
            site=self._sites[device],
            at=at,
            temperature=None if draws.failed[place] else round(warmth, 2),
            humidity=round(80 - 1.5 * warmth, 1) if device % 2 == 0 else None,
        )
