"""The elements of one input with some of their fields: the members that a join combines.

A join of a stage makes these aggregates itself, so they have no keyword.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart, PartialMerger
from penstock.engine.aggregates.aggregate import Aggregate
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
from penstock.engine.aggregates.list_parts import name_list_columns
from penstock.engine.aggregates.restricted_columns import INPUT_COLUMN, TOPIC_COLUMN
from penstock.engine.columnar import NumpyColumn, Rows, to_python_values
from penstock.engine.definition.phrases import join_phrases
from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.errors import DefinitionError

PRESENCE_ENTRY = EntryColumn("there", "true", pa.bool_())
"""A placeholder column for elements of which no field is selected."""


@dataclass(frozen=True)
class JoinMembers(Aggregate):
    """The elements of one input with some of their fields, which a join combines."""

    function_name: ClassVar[str] = "join_members"

    input: str
    fields: tuple[str, ...]

    @property
    def used_fields(self) -> tuple[str, ...]:
        """The fields of the elements."""
        return self.fields

    @property
    def restricted_input(self) -> str | None:
        """The input."""
        return self.input

    def describe(self, *, panes: bool = False) -> str:
        """Describe the elements."""
        if not self.fields:
            return f"records of {self.input}"
        return f"{join_phrases(list(self.fields))} of every record of {self.input}"

    def describe_state(self) -> str:
        """Describe the stored elements."""
        return "every record, with the fields that the join returns"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of a list of elements."""
        fields = [pa.field(name, require_joinable(name, self.input, context)) for name in self.fields]
        return pa.list_(pa.struct(fields))

    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build one list for each field. Changes are netted, so retracted elements disappear."""
        result_type = self.result_type(context)
        field_entries = [
            EntryColumn(f"field_{number}", quote_column(name), context.field_types[name])
            for number, name in enumerate(self.fields)
        ] or [PRESENCE_ENTRY]
        weight_columns = [EntryColumn("weight", WEIGHT_COLUMN, pa.int64())] if context.over_changes else []
        entry_columns = [*field_entries, *weight_columns]
        source_columns = [*(self.fields or (None,)), *(column.sql for column in weight_columns)]
        names = name_list_columns(context.output, entry_columns)
        merger: PartialMerger = (
            ListMerger(names, _net_weights) if context.over_changes else AppendMerger(names)
        )
        is_member_sql = f"{TOPIC_COLUMN} = {sql_literal(self.input)}"
        entry_sql = sql_struct(*alias_columns(entry_columns))
        collect_sql = f"collect_list(CASE WHEN {is_member_sql} THEN {entry_sql} END)"

        def part(name: str, entry_column: EntryColumn, source_column: str | None) -> AccumulatorPart:
            sql = f"{collect_sql}.{entry_column.name}"
            lift = self._make_lift(source_column)
            return AccumulatorPart(name, sql, pa.list_(entry_column.type), merger, lift)

        def show(rows: Rows) -> NumpyColumn:
            if context.over_changes:
                entries_of_rows = iterate_entries(rows, names)
                return to_object_column(
                    [_list_present_members(list(entries), len(field_entries)) for entries in entries_of_rows]
                )
            lists = [[entries or () for entries in rows[name].tolist()] for name in names]
            return to_object_column(list(zip(*lists, strict=True)))

        parts = tuple(
            part(*arguments) for arguments in zip(names, entry_columns, source_columns, strict=True)
        )
        return Accumulator(context.output, result_type, parts, show)

    def restrict_to_input(self, input_: str) -> Aggregate:
        """Refuse it: the elements are of one input already."""
        raise DefinitionError("aggregate.of", "nested", "Name one input: of('clicks', count())")

    def _make_lift(self, source_column: str | None) -> Callable[[pa.Table], NumpyColumn]:
        def lift(elements: pa.Table) -> NumpyColumn:
            is_of_input = np.asarray(elements.column(INPUT_COLUMN)) == self.input
            values = (
                repeat(True, len(is_of_input))
                if source_column is None
                else to_python_values(elements.column(source_column))
            )
            return to_single_entry_lists(list(values), is_of_input.tolist())

        return lift


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
