"""Result columns: a name and its aggregate."""

from dataclasses import dataclass

from penstock.engine.aggregates.aggregate import AGGREGATE_HINT, Aggregate
from penstock.engine.definition.argument_checks import require, require_name, require_type


@dataclass(frozen=True)
class AggregateOutput:
    """A result column and its aggregate."""

    name: str
    aggregate: Aggregate

    def __post_init__(self) -> None:
        require_name(self.name, "aggregate")
        fix = "Choose a name that starts with a letter: names with a leading _ are reserved"
        require(not self.name.startswith("_"), f"aggregate.{self.name}", repr(self.name), fix)
        require_type(self.aggregate, Aggregate, f"aggregate.{self.name}", AGGREGATE_HINT)
        for field in self.aggregate.used_fields:
            require_name(field, f"aggregate.{self.name}")
