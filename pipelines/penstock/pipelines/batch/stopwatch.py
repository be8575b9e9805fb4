"""How long the steps of a batch took: for people to look at, never for the engine to act on."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Stopwatch:
    """Adds up milliseconds by the name of a step."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        began = perf_counter()
        try:
            yield
        finally:
            spent = (perf_counter() - began) * 1000
            self.durations_ms[name] = round(self.durations_ms.get(name, 0.0) + spent, 3)
