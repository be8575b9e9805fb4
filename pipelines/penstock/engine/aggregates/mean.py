"""Mean: the sum of a field's values, divided by their number."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.field_types import resolve_sum_type
from penstock.engine.aggregates.sum_parts import AdditiveAggregate, SumParts
from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.definition.keyword import keyword


@dataclass(frozen=True)
class Mean(AdditiveAggregate):
    """Arithmetic mean of the field; null when no record had a value."""

    function_name: ClassVar[str] = "mean"

    def describe(self, *, panes: bool = False) -> str:
        """Describe what is averaged."""
        return f"mean of {self.field}"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of a mean, which is a float, also of decimals."""
        resolve_sum_type(self.field, context)
        return pa.float64()

    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build the sum, exact for decimals, and the number of its values."""
        sum_type = resolve_sum_type(self.field, context)
        total = SumParts(self.field, sum_type if pa.types.is_decimal(sum_type) else pa.float64(), context)
        count_part = context.make_count_part(self.field)

        def show(rows: Rows) -> NumpyColumn:
            means: NumpyColumn = total.extract_sums(rows) / np.maximum(rows[count_part.name], 1)
            return means.astype(np.float64)

        parts = (*total.parts(), count_part)
        return Accumulator(context.output, self.result_type(context), parts, show, count_part.name)


@keyword("mean", synonyms=("avg", "average", "meanof"), sql_name="AVG")
def mean(field: str) -> Mean:
    """Average the values of a field. Nulls are ignored.

    Args:
        field: the name of a numeric field.

    Example:
        aggregate(temperature=mean("temperature"))
    """
    return Mean(field)
