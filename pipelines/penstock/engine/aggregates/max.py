"""Max: the greatest value of a field."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.field_types import require_comparable
from penstock.engine.aggregates.list_columns import nan_last_key
from penstock.engine.aggregates.min_max import build_min_max
from penstock.engine.aggregates.values_aggregate import FieldValuesAggregate
from penstock.engine.definition.keyword import keyword


@dataclass(frozen=True)
class Max(FieldValuesAggregate):
    """Maximum of the field."""

    function_name: ClassVar[str] = "max"

    def describe(self, *, panes: bool = False) -> str:
        """Describe the value."""
        return f"maximum of {self.field}"

    def describe_state(self) -> str:
        """Describe its state: the value, and how many there were."""
        return "a few numbers"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the field's type."""
        return require_comparable(self.field, context)

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the greatest value."""
        return build_min_max(context, self.field, self.result_type(context), "max")

    def from_values(self, values: Sequence[Any]) -> Any:
        """Return the greatest value. NaN is greater than every number."""
        return max(values, key=nan_last_key, default=None)


@keyword("max", synonyms=("maximum", "largest", "greatest"))
def max_(field: str) -> Max:
    """Take the greatest value of a field. In YAML it is `max`. Nulls are ignored.

    Args:
        field: the name of a field whose values have an order.

    Example:
        aggregate(warmest=max_("temperature"))
    """
    return Max(field)
