"""Top n: the elements with the greatest, or least, values of a field."""

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
    nan_last_key,
    to_output_lists,
    to_single_entry_lists,
)
from penstock.engine.columnar import NumpyColumn, to_python_values
from penstock.engine.definition.predicates import quote_column
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.aggregates import AggregateOutput, TopN

MAX_TOP_N = 100_000
"""Spark's limit of entries for each group."""


def build_top_n(output: AggregateOutput, aggregate: TopN, context: AggregateContext) -> Accumulator:
    """Build the field of the n best elements, best first; the lower address wins a tie."""
    name, score_field = output.name, aggregate.by or aggregate.field
    if aggregate.n > MAX_TOP_N:
        raise DefinitionError(
            f"aggregate.{name}",
            f"n is {aggregate.n}, above the limit of {MAX_TOP_N}",
            f"Use at most {MAX_TOP_N}, or collect all values",
        )
    address_columns = select_order_columns("arrival", has_several_inputs=context.has_several_inputs)
    score_column = EntryColumn(
        "score", quote_column(score_field), require_comparable(context.field_types[score_field], output)
    )
    value_column = EntryColumn("value", quote_column(aggregate.field), context.field_types[aggregate.field])
    entry_columns, source_columns = (
        (score_column, *address_columns, value_column),
        (score_field, *(entry_column.sql for entry_column in address_columns), aggregate.field),
    )

    merger = ListMerger(
        tuple(f"{name}_{entry_column.name}s" for entry_column in entry_columns),
        lambda entries: select_top_n(aggregate, entries),
    )
    top_n_sql = _build_top_n_sql(
        aggregate, score_column, address_columns, sql_struct(*alias_columns(entry_columns))
    )

    def part(entry_column: EntryColumn, source_column: str) -> AccumulatorPart:
        def lift(elements: pa.Table) -> NumpyColumn:
            return to_single_entry_lists(
                to_python_values(elements.column(source_column)), flag_valid(elements, score_field).tolist()
            )

        return AccumulatorPart(
            f"{name}_{entry_column.name}s",
            f"{top_n_sql}.{entry_column.name}",
            pa.list_(entry_column.type),
            merger,
            lift,
        )

    parts = tuple(
        part(entry_column, source_column)
        for entry_column, source_column in zip(entry_columns, source_columns, strict=True)
    )
    return Accumulator(
        name, pa.list_(value_column.type), parts, lambda rows: to_output_lists(rows, f"{name}_values")
    )


def select_top_n(aggregate: TopN, entries: list[ListEntry]) -> Sequence[ListEntry]:
    """Return the n best entries of score, address and value, best first."""
    by_address = sorted(entries, key=itemgetter(slice(1, -1)))
    return sorted(by_address, key=lambda entry: nan_last_key(entry[0]), reverse=aggregate.largest)[
        : aggregate.n
    ]


def _build_top_n_sql(
    aggregate: TopN, score_column: EntryColumn, address_columns: Sequence[EntryColumn], entry_sql: str
) -> str:
    """Return SQL for the n best of a group. A group has one topic, so ties ignore the topic."""
    numeric_columns = [
        entry_column.sql for entry_column in address_columns if pa.types.is_integer(entry_column.type)
    ]
    tie_breakers = [f"-{column}" for column in numeric_columns] if aggregate.largest else numeric_columns
    order_sql = (
        f"CASE WHEN {score_column.sql} IS NOT NULL THEN {sql_struct(score_column.sql, *tie_breakers)} END"
    )
    return f"({'max_by' if aggregate.largest else 'min_by'}({entry_sql}, {order_sql}, {aggregate.n}))"
