"""Of: another aggregate, restricted to one input of a stage that reads several."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate import AGGREGATE_HINT, Aggregate
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.restricted_columns import RestrictedColumn
from penstock.engine.definition.argument_checks import require_name, require_type
from penstock.engine.definition.keyword import keyword
from penstock.engine.errors import DefinitionError


@dataclass(frozen=True)
class OfInput(Aggregate):
    """Another aggregate, restricted to one input of a stage that reads several."""

    function_name: ClassVar[str] = "of"

    input: str
    aggregate: Aggregate

    def __post_init__(self) -> None:
        require_name(self.input, "aggregate.of")
        require_type(self.aggregate, Aggregate, "aggregate.of", AGGREGATE_HINT)
        self.aggregate.restrict_to_input(self.input)

    @property
    def used_fields(self) -> tuple[str, ...]:
        """The fields that the aggregate reads."""
        return self.aggregate.used_fields

    @property
    def visible_fields(self) -> tuple[str, ...]:
        """The fields that the aggregate shows."""
        return self.aggregate.visible_fields

    @property
    def can_retract(self) -> bool:
        """Whether the aggregate can."""
        return self.aggregate.can_retract

    @property
    def needs_arrival_order(self) -> bool:
        """Whether the aggregate does."""
        return self.aggregate.needs_arrival_order

    @property
    def is_reproducible(self) -> bool:
        """Whether the aggregate is."""
        return self.aggregate.is_reproducible

    @property
    def restricted_input(self) -> str | None:
        """The input."""
        return self.input

    @property
    def restricted_columns(self) -> tuple[RestrictedColumn, ...]:
        """The fields of the aggregate; without fields, a column that only elements of the input have."""
        fields: tuple[str | None, ...] = self.aggregate.used_fields or (None,)
        return tuple(RestrictedColumn(self.input, field) for field in fields)

    def describe(self, *, panes: bool = False) -> str:
        """Describe the aggregate and the input."""
        return f"{self.aggregate.describe(panes=panes)} of {self.input} only"

    def describe_state(self) -> str:
        """Describe what the aggregate stores."""
        return self.aggregate.describe_state()

    def describe_call(self) -> str:
        """Describe it as in a definition."""
        return f"of({self.input}, {self.aggregate.describe_call()})"

    def check_column_types(self, column_types: Mapping[str, str | None], location: str) -> None:
        """Check the types for the aggregate."""
        self.aggregate.check_column_types(column_types, location)

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of the aggregate."""
        return self.aggregate.result_type(context)

    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build the aggregate over the restricted columns."""
        return self.aggregate.restrict_to_input(self.input).build_accumulator(context)

    def restrict_to_input(self, input_: str) -> Aggregate:
        """Refuse it: one input is named already."""
        raise DefinitionError("aggregate.of", "nested", "Name one input: of('clicks', count())")


@keyword("of")
def of(input_: str, aggregate: Aggregate) -> OfInput:
    """Restrict an aggregate to the records of one input of a stage that reads several.

    Args:
        input_: the name of the input: its topic, or the name of the stage.
        aggregate: the aggregate.

    Example:
        read("clicks", "views").aggregate(clicks=of("clicks", count()), views=of("views", count()))
    """
    return OfInput(input_, aggregate)
