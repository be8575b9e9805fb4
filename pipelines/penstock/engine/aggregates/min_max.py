"""The state of the least and of the greatest value."""

from typing import Literal

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.mergers import MinMaxMerger
from penstock.engine.columnar import NumpyColumn, Rows, empty_value, to_numpy
from penstock.engine.definition.predicates import quote_column


def build_min_max(
    context: AggregateContext, field: str, value_type: pa.DataType, function: Literal["min", "max"]
) -> Accumulator:
    """Build the least or the greatest value of a field."""
    name = f"{context.output}_{function}"
    count_part = context.make_count_part(field)
    merger = MinMaxMerger(name, count_part.name, is_max=function == "max")

    def lift(elements: pa.Table) -> NumpyColumn:
        return to_numpy(elements.column(field))

    def show(rows: Rows) -> NumpyColumn:
        return rows[name]

    sql = f"{function}({quote_column(field)})"
    part = AccumulatorPart(name, sql, value_type, merger, lift, empty_value(value_type))
    return Accumulator(context.output, value_type, (part, count_part), show, count_part.name)
