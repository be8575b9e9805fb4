"""How a pipeline is shown: how much of which input, at which pace. A catalog file may say it beside its pipeline.

    demo = Demo(rate=2, last="90 seconds", step="3 seconds")
    demo: {rate: 2, last: 90 seconds, step: 3 seconds}

A pipeline that says nothing is shown by `Demo()`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from penstock.engine.errors import DefinitionError
from penstock.stream.durations import to_milliseconds


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
    stage: str = ""
    """Whose panes are drawn; the pipeline's own stage without it."""
    note: str = ""
    """What to look at in the picture, in a sentence."""

    @property
    def last_ms(self) -> int:
        """For how long records are sent."""
        return to_milliseconds(self.last, "demo.last")

    @property
    def step_ms(self) -> int:
        """The time between two batches."""
        return to_milliseconds(self.step, "demo.step")


def parse_demo(node: object) -> Demo:
    """Return how a pipeline is shown, as a YAML file says it. Raises DefinitionError for what it may not say."""
    field_names = [demo_field.name for demo_field in fields(Demo)]
    if node is None:
        return Demo()
    if not isinstance(node, Mapping) or not set(node) <= set(field_names):
        raise DefinitionError("demo", repr(node), f"Write some of: {', '.join(field_names)}")
    try:
        return msgspec.convert(node, Demo)
    except msgspec.ValidationError as problem:
        raise DefinitionError(
            "demo", str(problem), "Write a text, a number or a list, as it says"
        ) from problem
