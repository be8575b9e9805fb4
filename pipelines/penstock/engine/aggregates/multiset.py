"""Multisets: retractable storage for aggregates that cannot subtract. They store every value with its weight.

A retraction has another address than its insert, so elements are identified by event time and values.
Elements of one time are ordered by their values.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import chain, repeat
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import WEIGHT_COLUMN, AggregateContext, flag_valid
from penstock.engine.aggregates.element_order import EVENT_TIME, EntryColumn, alias_columns, sql_struct
from penstock.engine.aggregates.field_types import require_comparable, require_comparable_elements
from penstock.engine.aggregates.list_columns import (
    ListEntry,
    ListMerger,
    iterate_entries,
    nan_last_key,
    nulls_first_key,
    to_object_column,
    to_single_entry_lists,
)
from penstock.engine.columnar import NumpyColumn, Rows, to_python_values
from penstock.engine.definition.predicates import quote_column
from penstock.engine.plan.aggregates import (
    Aggregate,
    AggregateOutput,
    Collect,
    Custom,
    Distinct,
    First,
    Last,
    Max,
    Min,
    Quantiles,
    TopN,
    aggregate_fields,
)


def build_multiset(
    output: AggregateOutput, result_type: pa.DataType, context: AggregateContext
) -> Accumulator:
    """Build the values of an aggregate's fields, from which each pane recomputes the aggregate."""
    name, fields = output.name, aggregate_fields(output.aggregate)
    values = [
        EntryColumn(
            f"value_{number}", quote_column(each), _entry_type(output, each, context.field_types[each])
        )
        for number, each in enumerate(fields)
    ]
    entry_columns = [EVENT_TIME, *values, EntryColumn("weight", WEIGHT_COLUMN, pa.int64())]
    source_columns = [EVENT_TIME.sql, *fields, WEIGHT_COLUMN]
    required_field = _required_field(output.aggregate)
    merger = ListMerger(tuple(f"{name}_{each.name}s" for each in entry_columns), _net_weights)
    entry_sql = sql_struct(*alias_columns(entry_columns))
    if required_field is not None:
        entry_sql = f"CASE WHEN {quote_column(required_field)} IS NOT NULL THEN {entry_sql} END"
    collect_sql = f"collect_list({entry_sql})"

    def part(entry_column: EntryColumn, source_column: str) -> AccumulatorPart:
        def lift(elements: pa.Table) -> NumpyColumn:
            count = elements.num_rows
            is_counted = (
                np.ones(count, bool) if required_field is None else flag_valid(elements, required_field) > 0
            )
            return to_single_entry_lists(
                to_python_values(elements.column(source_column)), is_counted.tolist()
            )

        return AccumulatorPart(
            f"{name}_{entry_column.name}s",
            f"{collect_sql}.{entry_column.name}",
            pa.list_(entry_column.type),
            merger,
            lift,
        )

    def show(rows: Rows) -> NumpyColumn:
        return to_object_column(
            [
                _compute_aggregate(output.aggregate, list(entries), context)
                for entries in iterate_entries(rows, merger.names)
            ]
        )

    parts = tuple(part(*each) for each in zip(entry_columns, source_columns, strict=True))
    return Accumulator(name, result_type, parts, show)


def _entry_type(output: AggregateOutput, field: str, field_type: pa.DataType) -> pa.DataType:
    """Return the type of a field, checked. Values that are shown but not ordered by may be lists."""
    match output.aggregate:
        case First() | Last() | Collect():
            return require_comparable_elements(field_type, output)
        case TopN(by=str(by)) if field != by:
            return require_comparable_elements(field_type, output)
        case _:
            return require_comparable(field_type, output)


def _required_field(aggregate: Aggregate) -> str | None:
    """Return the field that must be non-null for an element to count."""
    match aggregate:
        case Custom():
            return None
        case TopN(field, by=by):
            return by or field
        case _:
            return aggregate_fields(aggregate)[0]


def _net_weights(entries: list[ListEntry]) -> Sequence[ListEntry]:
    """Return each element once with its total weight. Elements whose weights cancel are dropped."""
    weights: Counter[ListEntry] = Counter()
    for *element, weight in entries:
        weights[tuple(element)] += weight
    netted = [(*element, weight) for element, weight in weights.items() if weight]
    return sorted(netted, key=lambda entry: (entry[0], [nulls_first_key(value) for value in entry[1:-1]]))


def _compute_aggregate(aggregate: Aggregate, entries: Sequence[ListEntry], context: AggregateContext) -> Any:
    elements = list(chain.from_iterable(repeat(tuple(e[1:-1]), max(e[-1], 0)) for e in entries))
    if isinstance(aggregate, Custom):
        return _apply_combiner(aggregate, elements, context)
    values = [element[0] for element in elements]
    match aggregate:
        case Distinct():
            return len(dict.fromkeys(values))
        case Collect():
            return tuple(values)
        case Quantiles(ranks=ranks):
            return _select_quantiles(sorted(values, key=nan_last_key), ranks)
        case TopN(n=n, largest=largest):
            sorted_elements = sorted(elements, key=lambda element: nan_last_key(element[-1]), reverse=largest)
            return tuple(element[0] for element in sorted_elements[:n])
    return _choose_value(aggregate, values) if values else None


def _choose_value(aggregate: Aggregate, values: Sequence[Any]) -> Any:
    """Return one of the values, of which there is at least one."""
    match aggregate:
        case Min():
            return min(values, key=nan_last_key)
        case Max():
            return max(values, key=nan_last_key)
        case First():
            return values[0]
        case Last():
            return values[-1]
        case _:
            raise TypeError(f"{aggregate} needs no multiset")


def _select_quantiles(values: Sequence[Any], ranks: Sequence[float]) -> tuple[Any, ...]:
    """Return, for each rank, the least value with at least that share of values at or below it."""
    if not values:
        return (None,) * len(ranks)
    selected = [values[max(ceil(share * len(values)), 1) - 1] for share in ranks]
    return tuple(float(value) if isinstance(value, Decimal) else value for value in selected)


def _apply_combiner(aggregate: Custom, elements: Sequence[ListEntry], context: AggregateContext) -> Any:
    combiner = aggregate.combiner.resolve()
    columns = zip(*elements, strict=True) if elements else [()] * len(aggregate.fields)
    arrays = [
        pa.array(values, context.field_types[name])
        for name, values in zip(aggregate.fields, columns, strict=True)
    ]
    table = pa.table(arrays, names=list(aggregate.fields))
    return to_python_values(combiner.result(combiner.add(table, np.zeros(len(elements), np.int64), 1)))[0]
