"""Count: the number of records, or of values."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.restricted_columns import RestrictedColumn
from penstock.engine.definition.keyword import keyword


@dataclass(frozen=True)
class Count(Aggregate):
    """Number of records; with a field, of records where it is not null."""

    function_name: ClassVar[str] = "count"

    field: str | None = None

    @property
    def used_fields(self) -> tuple[str, ...]:
        """The field, if there is one."""
        return () if self.field is None else (self.field,)

    @property
    def visible_fields(self) -> tuple[str, ...]:
        """None: a number shows no value."""
        return ()

    def describe(self, *, panes: bool = False) -> str:
        """Describe what is counted."""
        return "number of records" if self.field is None else f"number of records with a {self.field}"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of a number of records."""
        return pa.int64()

    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build the number."""
        part = context.make_count_part(self.field)
        return Accumulator(context.output, self.result_type(context), (part,), lambda rows: rows[part.name])

    def restrict_to_input(self, input_: str) -> "Count":
        """Return the count of the field's values of one input, or of its elements."""
        return Count(RestrictedColumn(input_, self.field).name)


@keyword("count", synonyms=("counter", "size", "len", "numrecords"))
def count(field: str | None = None) -> Count:
    """Count records, or only those in which a field is not null.

    Args:
        field: the field. Without it, all records are counted.

    Example:
        aggregate(orders=count(), paid=count("paid_at"))
    """
    return Count(field)
