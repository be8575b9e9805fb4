"""The state of the first and of the last value: the value with its time and address."""

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.element_order import (
    EntryColumn,
    ValueOrder,
    alias_columns,
    select_order_columns,
    sql_struct,
)
from penstock.engine.aggregates.mergers import FirstLastMerger
from penstock.engine.columnar import NumpyColumn, empty_value, to_numpy
from penstock.engine.definition.predicates import quote_column

STATE_DESCRIPTION = "a value with its time, partition and offset"


def build_first_last(
    context: AggregateContext, field: str, order: ValueOrder, *, is_last: bool
) -> Accumulator:
    """Build the value of the first or the last element that has one."""
    name = context.output
    order_columns = select_order_columns(order, has_several_inputs=context.has_several_inputs)
    value_column = EntryColumn("value", quote_column(field), context.field_types[field])
    count_part = context.make_count_part(field)
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

        return AccumulatorPart(
            f"{name}_{entry_column.name}",
            f"{chosen_sql}.{entry_column.name}",
            entry_column.type,
            merger,
            lift,
            empty_value(entry_column.type),
        )

    parts = (
        part(value_column, field),
        *(part(entry_column, entry_column.sql) for entry_column in order_columns),
        count_part,
    )
    return Accumulator(name, value_column.type, parts, lambda rows: rows[value_name], count_part.name)
