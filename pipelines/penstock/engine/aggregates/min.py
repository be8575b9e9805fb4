"""Min: the least value of a field."""

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
class Min(FieldValuesAggregate):
    """Minimum of the field."""

    function_name: ClassVar[str] = "min"

    def describe(self, *, panes: bool = False) -> str:
        """Describe the value."""
        return f"minimum of {self.field}"

    def describe_state(self) -> str:
        """Describe its state: the value, and how many there were."""
        return "a few numbers"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the field's type."""
        return require_comparable(self.field, context)

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the least value."""
        return build_min_max(context, self.field, self.result_type(context), "min")

    def from_values(self, values: Sequence[Any]) -> Any:
        """Return the least value. NaN is greater than every number."""
        return min(values, key=nan_last_key, default=None)


@keyword("min", synonyms=("minimum", "smallest", "least"))
def min_(field: str) -> Min:
    """Take the least value of a field. In YAML it is `min`. Nulls are ignored.

    Args:
        field: the name of a field whose values have an order.

    Example:
        aggregate(coldest=min_("temperature"))
    """
    return Min(field)
