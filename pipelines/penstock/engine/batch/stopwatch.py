"""Measures the steps of a batch, for people only: the engine never acts on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Stopwatch:
    """Adds up milliseconds by step."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure the block."""
        started_s = perf_counter()
        try:
            yield
        finally:
            elapsed_ms = (perf_counter() - started_s) * 1000
            self.durations_ms[name] = round(self.durations_ms.get(name, 0.0) + elapsed_ms, 3)
