"""Aggregates over one input: computed over columns that are null for elements of other inputs.

Every aggregate skips nulls, and `Count()` becomes the count of a column that only elements of the input have.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.plan.aggregates import (
    Aggregate,
    AggregateOutput,
    Count,
    Custom,
    JoinMembers,
    OfInput,
    TopN,
    aggregate_fields,
)

INPUT_COLUMN = "_input"
"""The column of a change that names its stage."""

TOPIC_COLUMN = "_topic"
"""The column of a record that names its input."""


@dataclass(frozen=True)
class RestrictedColumn:
    """A field restricted to elements of one input; without a field, true for them."""

    input: str
    field: str | None = None

    @property
    def name(self) -> str:
        """The column's name."""
        return f"{self.field or ''}@{self.input}"

    def to_sql(self) -> str:
        """Return the SQL that computes it from a record."""
        value = "true" if self.field is None else quote_column(self.field)
        return f"CASE WHEN {TOPIC_COLUMN} = {sql_literal(self.input)} THEN {value} END AS {quote_column(self.name)}"

    def from_changes(self, elements: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Compute it from changes."""
        is_of_input = pc.equal(elements.column(INPUT_COLUMN), self.input)
        if self.field is None:
            return pc.if_else(is_of_input, True, pa.scalar(None, pa.bool_()))
        column = elements.column(self.field)
        return pc.if_else(is_of_input, column, pa.scalar(None, column.type))


def collect_restricted_columns(outputs: Iterable[AggregateOutput]) -> tuple[RestrictedColumn, ...]:
    """Return the columns that restricted aggregates need, each once."""
    columns = (column for output in outputs for column in _list_restricted_columns(output.aggregate))
    return tuple(dict.fromkeys(columns))


def use_restricted_columns(output: AggregateOutput) -> AggregateOutput:
    """Return the output, rewritten over restricted columns."""
    if not isinstance(output.aggregate, OfInput):
        return output
    return AggregateOutput(output.name, _rename_fields(output.aggregate.aggregate, output.aggregate.input))


def _list_restricted_columns(aggregate: Aggregate) -> list[RestrictedColumn]:
    if not isinstance(aggregate, OfInput):
        return []
    fields: tuple[str | None, ...] = aggregate_fields(aggregate.aggregate)
    return [RestrictedColumn(aggregate.input, name) for name in fields or (None,)]


def _rename_fields(aggregate: Aggregate, input_: str) -> Aggregate:
    def restricted_name(field: str | None) -> str:
        return RestrictedColumn(input_, field).name

    match aggregate:
        case Count(field):
            return Count(restricted_name(field))
        case TopN(field=field, by=by):
            return replace(
                aggregate, field=restricted_name(field), by=None if by is None else restricted_name(by)
            )
        case Custom() | JoinMembers() | OfInput():
            raise TypeError(f"{aggregate} cannot be restricted to one input")
        case _:
            return replace(aggregate, field=restricted_name(aggregate.field))
