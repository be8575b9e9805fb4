"""Multisets: state that stores every value with its weight, for aggregates that cannot subtract.

A retraction has another address than its insert, so elements are identified by event time and values.
Elements of one time are ordered by their values.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext, flag_valid
from penstock.engine.aggregates.element_order import EVENT_TIME, EntryColumn, alias_columns, sql_struct
from penstock.engine.aggregates.list_columns import (
    ListEntry,
    ListMerger,
    iterate_entries,
    nulls_first_key,
    to_object_column,
    to_single_entry_lists,
)
from penstock.engine.columnar import NumpyColumn, Rows, to_python_values
from penstock.engine.definition.predicates import quote_column


def build_multiset(
    context: AggregateContext,
    result_type: pa.DataType,
    fields: Sequence[pa.Field],
    required_field: str | None,
    from_elements: Callable[[Sequence[ListEntry]], Any],
) -> Accumulator:
    """Build the values of these fields, from which each pane computes its value with `from_elements`.

    Elements without a value in `required_field` are not stored.
    """
    values = [
        EntryColumn(f"value_{number}", quote_column(field.name), field.type)
        for number, field in enumerate(fields)
    ]
    entry_columns = [EVENT_TIME, *values, EntryColumn("weight", context.weight_sql, pa.int64())]
    names = tuple(f"{context.output}_{entry_column.name}s" for entry_column in entry_columns)
    merger = ListMerger(names, _net_weights)
    entry_sql = sql_struct(*alias_columns(entry_columns))
    if required_field is not None:
        entry_sql = f"CASE WHEN {quote_column(required_field)} IS NOT NULL THEN {entry_sql} END"

    def part(
        name: str, entry_column: EntryColumn, read_values: Callable[[pa.Table], list[Any]]
    ) -> AccumulatorPart:
        def lift(elements: pa.Table) -> NumpyColumn:
            is_stored = (
                np.ones(elements.num_rows, bool)
                if required_field is None
                else flag_valid(elements, required_field) > 0
            )
            return to_single_entry_lists(read_values(elements), is_stored.tolist())

        sql = f"collect_list({entry_sql}).{entry_column.name}"
        return AccumulatorPart(name, sql, pa.list_(entry_column.type), merger, lift)

    def show(rows: Rows) -> NumpyColumn:
        return to_object_column(
            [from_elements(_repeat_by_weight(entries)) for entries in iterate_entries(rows, names)]
        )

    readers = [
        *(_make_column_reader(name) for name in (EVENT_TIME.sql, *(field.name for field in fields))),
        lambda elements: context.element_weights(elements).tolist(),
    ]
    parts = tuple(part(*arguments) for arguments in zip(names, entry_columns, readers, strict=True))
    return Accumulator(context.output, result_type, parts, show)


def _make_column_reader(name: str) -> Callable[[pa.Table], list[Any]]:
    return lambda elements: to_python_values(elements.column(name))


def _net_weights(entries: list[ListEntry]) -> Sequence[ListEntry]:
    """Return each element once with its total weight. Elements whose weights cancel are dropped."""
    weights: Counter[ListEntry] = Counter()
    for *element, weight in entries:
        weights[tuple(element)] += weight
    netted = [(*element, weight) for element, weight in weights.items() if weight]
    return sorted(netted, key=lambda entry: (entry[0], [nulls_first_key(value) for value in entry[1:-1]]))


def _repeat_by_weight(entries: Iterable[ListEntry]) -> list[ListEntry]:
    """Return the values of each element as often as its weight says, without time and weight."""
    return list(chain.from_iterable(repeat(tuple(entry[1:-1]), max(entry[-1], 0)) for entry in entries))
