"""Columns of aggregates over one input: they are null for elements of other inputs.

Every aggregate skips nulls, and `Count()` becomes the count of a column that only elements of the input have.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.definition.predicates import quote_column, sql_literal

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
