"""Top n: a field of the elements with the greatest, or least, values of another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.element_order import (
    EntryColumn,
    alias_columns,
    select_order_columns,
    sql_struct,
)
from penstock.engine.aggregates.field_types import require_comparable
from penstock.engine.aggregates.list_columns import ListEntry, ListMerger, nan_last_key, to_output_lists
from penstock.engine.aggregates.list_parts import make_entry_parts, name_list_columns
from penstock.engine.aggregates.restricted_columns import RestrictedColumn
from penstock.engine.aggregates.values_aggregate import ValuesAggregate
from penstock.engine.definition.argument_checks import require_name, require_positive
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.predicates import quote_column

MAX_TOP_N = 100_000
"""Spark's limit of entries for each group."""


@dataclass(frozen=True)
class TopN(ValuesAggregate):
    """The field of the n records with the largest (or smallest) `by`, best first.

    The earlier arrival wins a tie. Without `by`, the field's own values are compared.
    """

    function_name: ClassVar[str] = "top"

    field: str
    n: int
    by: str | None = None
    largest: bool = True

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.top")
        require_positive(self.n, "aggregate.top.n", "records")

    @property
    def score_field(self) -> str:
        """The field whose values are compared."""
        return self.by or self.field

    @property
    def used_fields(self) -> tuple[str, ...]:
        """The field, and the one that is compared."""
        return (self.field,) if self.by is None else (self.field, self.by)

    @property
    def required_field(self) -> str | None:
        """The compared field."""
        return self.score_field

    @property
    def ordered_fields(self) -> tuple[str, ...]:
        """The compared field; the other one may be a list."""
        return (self.score_field,)

    def describe(self, *, panes: bool = False) -> str:
        """Describe the field and what is compared."""
        record_phrase = "record" if self.n == 1 else f"{self.n} records"
        rank_phrase = "largest" if self.largest else "smallest"
        return f"{self.field} of the {record_phrase} with the {rank_phrase} {self.score_field}"

    def describe_state(self) -> str:
        """Describe the stored records."""
        return "a record" if self.n == 1 else f"{self.n} records"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of a list of the field."""
        if self.n > MAX_TOP_N:
            problem = f"n is {self.n}, above the limit of {MAX_TOP_N}"
            raise context.error(problem, f"Use at most {MAX_TOP_N}, or collect all values")
        require_comparable(self.score_field, context)
        return pa.list_(context.field_types[self.field])

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the n best elements, best first; the lower address wins a tie."""
        result_type = self.result_type(context)
        address_columns = select_order_columns("arrival", has_several_inputs=context.has_several_inputs)
        score_column = EntryColumn(
            "score", quote_column(self.score_field), context.field_types[self.score_field]
        )
        value_column = EntryColumn("value", quote_column(self.field), context.field_types[self.field])
        entry_columns = (score_column, *address_columns, value_column)
        source_columns = (
            self.score_field,
            *(entry_column.sql for entry_column in address_columns),
            self.field,
        )
        merger = ListMerger(name_list_columns(context.output, entry_columns), self._select_best)
        top_n_sql = self._build_sql(score_column, address_columns, sql_struct(*alias_columns(entry_columns)))
        parts = make_entry_parts(top_n_sql, entry_columns, source_columns, merger, self.score_field)
        return Accumulator(
            context.output, result_type, parts, lambda rows: to_output_lists(rows, merger.names[-1])
        )

    def from_elements(self, elements: Sequence[ListEntry]) -> Any:
        """Return the field of the n best elements. The last of the used fields is compared."""
        ranked = sorted(elements, key=lambda element: nan_last_key(element[-1]), reverse=self.largest)
        return tuple(element[0] for element in ranked[: self.n])

    def restrict_to_input(self, input_: str) -> "TopN":
        """Return it over both fields of one input."""
        by = None if self.by is None else RestrictedColumn(input_, self.by).name
        return replace(self, field=RestrictedColumn(input_, self.field).name, by=by)

    def _select_best(self, entries: list[ListEntry]) -> Sequence[ListEntry]:
        """Return the n best entries of score, address and value, best first."""
        by_address = sorted(entries, key=itemgetter(slice(1, -1)))
        return sorted(by_address, key=lambda entry: nan_last_key(entry[0]), reverse=self.largest)[: self.n]

    def _build_sql(
        self, score_column: EntryColumn, address_columns: Sequence[EntryColumn], entry_sql: str
    ) -> str:
        """Return SQL for the n best of a group. A group has one topic, so ties ignore the topic."""
        numeric_columns = [
            entry_column.sql for entry_column in address_columns if pa.types.is_integer(entry_column.type)
        ]
        tie_breakers = [f"-{column}" for column in numeric_columns] if self.largest else numeric_columns
        order_sql = (
            f"CASE WHEN {score_column.sql} IS NOT NULL THEN {sql_struct(score_column.sql, *tie_breakers)} END"
        )
        return f"({'max_by' if self.largest else 'min_by'}({entry_sql}, {order_sql}, {self.n}))"


@keyword("top", synonyms=("topn", "topk", "mostfrequent", "mode"))
def top(n: int, field: str, by: str | None = None, largest: bool = True) -> TopN:
    """Take a field of the n records with the greatest values of another field.

    Args:
        n: how many records.
        field: the field whose values are returned, as a list.
        by: the field that is compared. The default is `field` itself.
        largest: False takes the least values.

    Example:
        aggregate(hottest=top(3, "device", by="temperature"))
    """
    return TopN(field, n, by, largest)
