"""The elements of one input with some of their fields: the members that a join combines."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart, PartialMerger
from penstock.engine.aggregates.aggregate_context import WEIGHT_COLUMN, AggregateContext
from penstock.engine.aggregates.element_order import EntryColumn, alias_columns, sql_struct
from penstock.engine.aggregates.field_types import require_joinable
from penstock.engine.aggregates.list_columns import (
    AppendMerger,
    ListEntry,
    ListMerger,
    iterate_entries,
    nan_last_key,
    to_object_column,
    to_single_entry_lists,
)
from penstock.engine.aggregates.per_input import INPUT_COLUMN, TOPIC_COLUMN
from penstock.engine.columnar import NumpyColumn, Rows, to_python_values
from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.plan.aggregates import AggregateOutput, JoinMembers

PRESENCE_ENTRY = EntryColumn("there", "true", pa.bool_())
"""A placeholder column for elements of which no field is selected."""


def build_members(output: AggregateOutput, aggregate: JoinMembers, context: AggregateContext) -> Accumulator:
    """Build the elements of an input as one list per field.

    Changes are netted, so retracted elements disappear.
    """
    field_entries = [
        EntryColumn(
            f"field_{number}",
            quote_column(name),
            require_joinable(context.field_types[name], name, aggregate.input),
        )
        for number, name in enumerate(aggregate.fields)
    ] or [PRESENCE_ENTRY]
    entry_columns = [
        *field_entries,
        *([EntryColumn("weight", WEIGHT_COLUMN, pa.int64())] if context.over_changes else []),
    ]
    source_columns = [*(aggregate.fields or (None,)), *([WEIGHT_COLUMN] if context.over_changes else [])]
    names = tuple(f"{output.name}_{entry_column.name}s" for entry_column in entry_columns)
    merger: PartialMerger = ListMerger(names, _net_weights) if context.over_changes else AppendMerger(names)
    is_member_sql = f"{TOPIC_COLUMN} = {sql_literal(aggregate.input)}"
    entry_sql = sql_struct(*alias_columns(entry_columns))
    collect_sql = f"collect_list(CASE WHEN {is_member_sql} THEN {entry_sql} END)"

    def part(name: str, entry_column: EntryColumn, source_column: str | None) -> AccumulatorPart:
        def lift(elements: pa.Table) -> NumpyColumn:
            is_of_input = np.asarray(elements.column(INPUT_COLUMN)) == aggregate.input
            values = (
                repeat(True, len(is_of_input))
                if source_column is None
                else to_python_values(elements.column(source_column))
            )
            return to_single_entry_lists(list(values), is_of_input.tolist())

        return AccumulatorPart(
            name, f"{collect_sql}.{entry_column.name}", pa.list_(entry_column.type), merger, lift
        )

    def show(rows: Rows) -> NumpyColumn:
        if context.over_changes:
            return to_object_column(
                [
                    _list_present_members(list(entries), len(field_entries))
                    for entries in iterate_entries(rows, names)
                ]
            )
        lists = [[entries or () for entries in rows[name].tolist()] for name in names]
        return to_object_column(list(zip(*lists, strict=True)))

    result_type = pa.list_(
        pa.struct(
            [
                pa.field(name, entry_column.type)
                for name, entry_column in zip(aggregate.fields, field_entries, strict=False)
            ]
        )
    )
    parts = tuple(
        part(*part_arguments) for part_arguments in zip(names, entry_columns, source_columns, strict=True)
    )
    return Accumulator(output.name, result_type, parts, show)


def _net_weights(entries: list[ListEntry]) -> Sequence[ListEntry]:
    weights: Counter[ListEntry] = Counter()
    for *element, weight in entries:
        weights[tuple(element)] += weight
    return [(*element, weight) for element, weight in weights.items() if weight]


def _list_present_members(entries: Sequence[ListEntry], field_count: int) -> tuple[Sequence[object], ...]:
    """Return the present elements, field by field."""
    present_entries = chain.from_iterable(repeat(entry[:-1], max(entry[-1], 0)) for entry in entries)
    # A retracted element may return at another position, so sort: only then can two panes be compared.
    rows = sorted(present_entries, key=_nulls_last_key)
    return tuple(zip(*rows, strict=True)) if rows else ((),) * field_count


def _nulls_last_key(value: Any) -> tuple[bool, Any]:
    """Sort key that puts null last and compares lists by their values."""
    if isinstance(value, tuple):
        return False, [_nulls_last_key(item) for item in value]
    return value is None, value is not None and nan_last_key(value)
