"""Sum: the values of a field, added up."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.field_types import resolve_sum_type
from penstock.engine.aggregates.sum_parts import AdditiveAggregate, SumParts
from penstock.engine.definition.keyword import keyword


@dataclass(frozen=True)
class Sum(AdditiveAggregate):
    """Sum of the field; null when no record had a value."""

    function_name: ClassVar[str] = "sum"

    def describe(self, *, panes: bool = False) -> str:
        """Describe what is added up."""
        return f"sum of {self.field}"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of the sum, widened as in Spark."""
        return resolve_sum_type(self.field, context)

    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build the sum, and the number of its values."""
        total = SumParts(self.field, self.result_type(context), context)
        count_part = context.make_count_part(self.field)
        parts = (*total.parts(), count_part)
        return Accumulator(context.output, total.sum_type, parts, total.extract_sums, count_part.name)


@keyword("sum", synonyms=("total", "add", "sumof"))
def sum_(field: str) -> Sum:
    """Sum the values of a field. In YAML it is `sum`. Nulls are ignored.

    Args:
        field: the name of a numeric field.

    Example:
        aggregate(revenue=sum_("amount"))
    """
    return Sum(field)
