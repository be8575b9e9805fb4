"""Last: the last value of a field, by event time or by arrival."""

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
class Last(OrderedAggregate):
    """Last value that is not null: by event time and then arrival, or by arrival."""

    function_name: ClassVar[str] = "last"

    def describe(self, *, panes: bool = False) -> str:
        """Describe the value and its order."""
        return f"last {self.field} by {self.order.replace('_', ' ')}"

    def describe_state(self) -> str:
        """Describe its state: one value."""
        return STATE_DESCRIPTION

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the field's type, which may be any."""
        return context.field_types[self.field]

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the last value, with what orders it."""
        return build_first_last(context, self.field, self.order, is_last=True)

    def from_values(self, values: Sequence[Any]) -> Any:
        """Return the last value."""
        return values[-1] if values else None


@keyword("last", synonyms=("lastvalue", "latest"), sql_name="LAST_VALUE")
def last(field: str, order: ValueOrder = "event_time") -> Last:
    """Take the last value of a field that is not null.

    Args:
        field: the name of a field of any type.
        order: `event_time`, or `arrival` order, which needs one topic as input.

    Example:
        aggregate(state=last("state"))
    """
    return Last(field, order)
