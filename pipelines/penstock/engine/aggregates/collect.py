"""Collect: all values of a field as a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.element_order import (
    EntryColumn,
    ValueOrder,
    alias_columns,
    select_order_columns,
    sql_struct,
)
from penstock.engine.aggregates.list_columns import ListEntry, ListMerger, to_output_lists
from penstock.engine.aggregates.list_parts import make_entry_parts, name_list_columns
from penstock.engine.aggregates.ordered_aggregate import OrderedAggregate
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.predicates import quote_column


@dataclass(frozen=True)
class Collect(OrderedAggregate):
    """All values of the field as a list, ordered by event time and then arrival, or by arrival."""

    function_name: ClassVar[str] = "collect"

    def describe(self, *, panes: bool = False) -> str:
        """Describe the list."""
        return f"list of all {self.field}"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of a list of the field."""
        return pa.list_(context.field_types[self.field])

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the list of all values, each stored with the time and address that order it."""
        name = context.output
        order_columns = select_order_columns(self.order, has_several_inputs=context.has_several_inputs)
        value = EntryColumn("value", quote_column(self.field), context.field_types[self.field])
        entry_columns = (*order_columns, value)
        sort_key = itemgetter(*range(len(order_columns)))

        def sort_entries(entries: list[ListEntry]) -> Sequence[ListEntry]:
            return sorted(entries, key=sort_key)

        merger = ListMerger(name_list_columns(name, entry_columns), sort_entries)
        entry_sql = sql_struct(*alias_columns(entry_columns))
        collect_sql = f"collect_list(CASE WHEN {value.sql} IS NOT NULL THEN {entry_sql} END)"
        source_columns = (*(entry_column.sql for entry_column in order_columns), self.field)
        parts = make_entry_parts(collect_sql, entry_columns, source_columns, merger, self.field)
        return Accumulator(
            name, self.result_type(context), parts, lambda rows: to_output_lists(rows, f"{name}_values")
        )

    def from_values(self, values: Sequence[Any]) -> Any:
        """Return the values."""
        return tuple(values)


@keyword("collect", synonyms=("collectlist", "arrayagg", "listagg", "tolist"), sql_name="ARRAY_AGG")
def collect(field: str, order: ValueOrder = "event_time") -> Collect:
    """Collect all values of a field into a list, nulls left out.

    Args:
        field: the name of a field of any type.
        order: the order of the list: `event_time`, or `arrival`, which needs one topic as input.

    Example:
        aggregate(pages=collect("page"))

    Not promised: a limit of the length. The state and each pane hold all values of the window.
    """
    return Collect(field, order)
