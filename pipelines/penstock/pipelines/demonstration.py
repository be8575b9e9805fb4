"""Demo settings of a pipeline: its input, how much of it, and at which pace. A catalog file may define them.

    demo = Demo(rate=2, last="90 seconds", step="3 seconds")
    demo: {rate: 2, last: 90 seconds, step: 3 seconds}

Without settings, a pipeline is demonstrated with `Demo()`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from penstock.engine.definition.durations import to_milliseconds
from penstock.engine.errors import DefinitionError


@dataclass(frozen=True)
class Demo:
    """The input and the pace of a demonstration. The same seed gives the same records, batches and results.

    `rate` is the number of records per second over all topics; a topic whose records carry their own times keeps
    these. `step` is the time between two batches, on the simulated clock of the demonstration.
    """

    rate: float = 20.0
    last: str = "4 minutes"
    step: str = "6 seconds"
    seed: int = 1
    key: tuple[Any, ...] | None = None
    """The key whose panes are drawn. Default: the key with the most panes."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """The share of the rate for each topic. Default: the same for all topics."""
    stage: str = ""
    """The stage whose panes are drawn. Default: the stage of the pipeline's own name."""
    note: str = ""
    """One sentence about the diagram, for the gallery page."""

    @property
    def last_ms(self) -> int:
        """The time over which records are sent, in milliseconds."""
        return to_milliseconds(self.last, "demo.last")

    @property
    def step_ms(self) -> int:
        """The time between two batches, in milliseconds."""
        return to_milliseconds(self.step, "demo.step")


def parse_demo(node: object) -> Demo:
    """Parse the `demo` section of a YAML pipeline. Raises DefinitionError if a field is unknown or invalid."""
    field_names = [demo_field.name for demo_field in fields(Demo)]
    if node is None:
        return Demo()
    if not isinstance(node, Mapping) or not set(node) <= set(field_names):
        raise DefinitionError("demo", repr(node), f"Write some of: {', '.join(field_names)}")
    try:
        return msgspec.convert(node, Demo)
    except msgspec.ValidationError as problem:
        raise DefinitionError(
            "demo", str(problem), "Give each field a value of its type, as in {rate: 20, last: 4 minutes}"
        ) from problem
