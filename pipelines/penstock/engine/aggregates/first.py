"""First: the first value of a field, by event time or by arrival."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.element_order import ValueOrder
from penstock.engine.aggregates.first_last import STATE_DESCRIPTION, build_first_last
from penstock.engine.aggregates.ordered_aggregate import OrderedAggregate
from penstock.engine.definition.keyword import keyword


@dataclass(frozen=True)
class First(OrderedAggregate):
    """First value that is not null: by event time and then arrival, or by arrival."""

    function_name: ClassVar[str] = "first"

    def describe(self, *, panes: bool = False) -> str:
        """Describe the value and its order."""
        return f"first {self.field} by {self.order.replace('_', ' ')}"

    def describe_state(self) -> str:
        """Describe its state: one value."""
        return STATE_DESCRIPTION

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the field's type, which may be any."""
        return context.field_types[self.field]

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the first value, with what orders it."""
        return build_first_last(context, self.field, self.order, is_last=False)

    def from_values(self, values: Sequence[Any]) -> Any:
        """Return the first value."""
        return values[0] if values else None


@keyword("first", synonyms=("firstvalue", "earliest", "anyvalue"), sql_name="FIRST_VALUE")
def first(field: str, order: ValueOrder = "event_time") -> First:
    """Take the first value of a field that is not null.

    Args:
        field: the name of a field of any type.
        order: `event_time`, or `arrival` order, which needs one topic as input.

    Example:
        aggregate(state=first("state"))
    """
    return First(field, order)
