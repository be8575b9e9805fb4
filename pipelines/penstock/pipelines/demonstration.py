"""How a pipeline is shown: how much of which input, at which pace. A catalog file may say it beside its pipeline.

    demo = Demo(rate=2, last="90 seconds", step="3 seconds")

A pipeline that says nothing is shown by `Demo()`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.pipelines.model.durations import milliseconds


@dataclass(frozen=True)
class Demo:
    """The input of a demonstration, and its pace: the same seed gives the same records, batches and results.

    `rate` is in records a second of all topics together; a topic whose records have times of their own goes by
    these. `step` is the time from one batch to the next, by the clock of the demonstration.
    """

    rate: float = 20.0
    last: str = "4 minutes"
    step: str = "6 seconds"
    seed: int = 1
    key: tuple[Any, ...] | None = None
    """Whose panes are drawn; without it those of the key that shows most."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """What part of the rate each topic gets, where several are read; without it all get the same."""
    note: str = ""
    """What to look at in the picture, in a sentence."""

    @property
    def last_ms(self) -> int:
        """For how long records are sent."""
        return milliseconds(self.last, "demo.last")

    @property
    def step_ms(self) -> int:
        """The time between two batches."""
        return milliseconds(self.step, "demo.step")
