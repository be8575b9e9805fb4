"""First and last: a value with its time and address."""

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.element_order import (
    EntryColumn,
    alias_columns,
    select_order_columns,
    sql_struct,
)
from penstock.engine.aggregates.mergers import FirstLastMerger
from penstock.engine.columnar import NumpyColumn, empty_value, to_numpy
from penstock.engine.definition.predicates import quote_column
from penstock.engine.plan.aggregates import AggregateOutput, First, Last


def build_first_last(
    output: AggregateOutput, aggregate: First | Last, context: AggregateContext
) -> Accumulator:
    """Build the value of the first or the last element that has one."""
    name, is_last = output.name, isinstance(aggregate, Last)
    order_columns = select_order_columns(aggregate.order, has_several_inputs=context.has_several_inputs)
    value_column = EntryColumn("value", quote_column(aggregate.field), context.field_types[aggregate.field])
    count_part = context.make_count_part(f"{name}_present", aggregate.field)
    order_names, value_name = (
        tuple(f"{name}_{entry_column.name}" for entry_column in order_columns),
        f"{name}_value",
    )
    merger = FirstLastMerger(order_names, (value_name,), count_part.name, is_last)
    entry_sql = sql_struct(*alias_columns([value_column, *order_columns]))
    order_struct_sql = sql_struct(*(entry_column.sql for entry_column in order_columns))
    order_sql = f"CASE WHEN {value_column.sql} IS NOT NULL THEN {order_struct_sql} END"
    chosen_sql = f"({'max_by' if is_last else 'min_by'}({entry_sql}, {order_sql}))"

    def part(entry_column: EntryColumn, source_column: str) -> AccumulatorPart:
        def lift(elements: pa.Table) -> NumpyColumn:
            return to_numpy(elements.column(source_column))

        sql = f"{chosen_sql}.{entry_column.name}"
        return AccumulatorPart(
            f"{name}_{entry_column.name}",
            sql,
            entry_column.type,
            merger,
            lift,
            empty_value(entry_column.type),
        )

    parts = (
        part(value_column, aggregate.field),
        *(part(entry_column, entry_column.sql) for entry_column in order_columns),
        count_part,
    )
    return Accumulator(name, value_column.type, parts, lambda rows: rows[value_name], count_part.name)
