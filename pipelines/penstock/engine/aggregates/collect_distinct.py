"""Collect, and the exact count of distinct values: lists of values."""

from collections.abc import Sequence
from operator import itemgetter

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext, flag_valid
from penstock.engine.aggregates.element_order import (
    EntryColumn,
    alias_columns,
    select_order_columns,
    sql_struct,
)
from penstock.engine.aggregates.field_types import require_comparable
from penstock.engine.aggregates.list_columns import (
    ListEntry,
    ListMerger,
    to_object_column,
    to_output_lists,
    to_single_entry_lists,
)
from penstock.engine.columnar import NumpyColumn, Rows, to_python_values
from penstock.engine.definition.predicates import quote_column
from penstock.engine.plan.aggregates import AggregateOutput, Collect, Distinct


def build_collect(output: AggregateOutput, aggregate: Collect, context: AggregateContext) -> Accumulator:
    """Build the list of all values of a field, each stored with the time and address that order it."""
    name = output.name
    order_columns = select_order_columns(aggregate.order, has_several_inputs=context.has_several_inputs)
    value = EntryColumn("value", quote_column(aggregate.field), context.field_types[aggregate.field])
    entry_columns = (*order_columns, value)
    sort_key = itemgetter(*range(len(order_columns)))

    def sort_entries(entries: list[ListEntry]) -> Sequence[ListEntry]:
        return sorted(entries, key=sort_key)

    merger = ListMerger(tuple(f"{name}_{entry_column.name}s" for entry_column in entry_columns), sort_entries)
    entry_sql = sql_struct(*alias_columns(entry_columns))
    collect_sql = f"collect_list(CASE WHEN {value.sql} IS NOT NULL THEN {entry_sql} END)"
    source_columns = (*(entry_column.sql for entry_column in order_columns), aggregate.field)
    parts = tuple(
        _build_list_part(
            f"{name}_{entry_column.name}s",
            f"{collect_sql}.{entry_column.name}",
            entry_column.type,
            merger,
            source_column,
            aggregate.field,
        )
        for entry_column, source_column in zip(entry_columns, source_columns, strict=True)
    )
    return Accumulator(
        name, pa.list_(value.type), parts, lambda rows: to_output_lists(rows, f"{name}_values")
    )


def build_exact_distinct(
    output: AggregateOutput, aggregate: Distinct, context: AggregateContext
) -> Accumulator:
    """Build the number of distinct values. All of them are stored."""
    name = f"{output.name}_values"
    value_type = require_comparable(context.field_types[aggregate.field], output)
    merger = ListMerger((name,), lambda entries: list(dict.fromkeys(entries)))
    part = _build_list_part(
        name,
        f"collect_set({quote_column(aggregate.field)})",
        value_type,
        merger,
        aggregate.field,
        aggregate.field,
    )

    def show(rows: Rows) -> NumpyColumn:
        return to_object_column([len(values or ()) for values in rows[name].tolist()]).astype("int64")

    return Accumulator(output.name, pa.int64(), (part,), show)


def _build_list_part(
    name: str, sql: str, value_type: pa.DataType, merger: ListMerger, column: str, field: str
) -> AccumulatorPart:
    """Return a list part with a column's values of the elements that have a value in `field`."""

    def lift(elements: pa.Table) -> NumpyColumn:
        return to_single_entry_lists(
            to_python_values(elements.column(column)), flag_valid(elements, field).tolist()
        )

    return AccumulatorPart(name, sql, pa.list_(value_type), merger, lift)
