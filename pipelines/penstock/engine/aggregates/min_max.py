"""Min and max."""

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.field_types import require_comparable
from penstock.engine.aggregates.mergers import MinMaxMerger
from penstock.engine.columnar import NumpyColumn, Rows, empty_value, to_numpy
from penstock.engine.definition.predicates import quote_column
from penstock.engine.plan.aggregates import AggregateOutput, Max, Min


def build_min_max(output: AggregateOutput, aggregate: Min | Max, context: AggregateContext) -> Accumulator:
    """Build the least or the greatest value of a field."""
    function = "max" if isinstance(aggregate, Max) else "min"
    name = f"{output.name}_{function}"
    value_type = require_comparable(context.field_types[aggregate.field], output)
    count_part = context.make_count_part(f"{output.name}_present", aggregate.field)
    merger = MinMaxMerger(name, count_part.name, is_max=function == "max")

    def lift(elements: pa.Table) -> NumpyColumn:
        return to_numpy(elements.column(aggregate.field))

    def show(rows: Rows) -> NumpyColumn:
        return rows[name]

    part = AccumulatorPart(
        name,
        f"{function}({quote_column(aggregate.field)})",
        value_type,
        merger,
        lift,
        empty_value(value_type),
    )
    return Accumulator(output.name, value_type, (part, count_part), show, count_part.name)
