"""Aggregates over the elements of one input alone: over columns that are null for the elements of all others.

Every aggregate passes over nulls, and `Count()` becomes the count of a column that only such elements have.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.plan.aggregates import (
    Aggregate,
    Count,
    Custom,
    Members,
    OfInput,
    Output,
    TopN,
    aggregate_fields,
)
from penstock.pipelines.plan.predicates import literal, quoted

INPUT = "_input"
"""The column of a change that says which stage it comes from."""

TOPIC = "_topic"
"""The column of a record that says which input it comes from."""


@dataclass(frozen=True)
class OneSided:
    """A field as only the elements of one input have it; without a field it is true for them."""

    input: str
    field: str | None = None

    @property
    def name(self) -> str:
        """The column's name."""
        return f"{self.field or ''}@{self.input}"

    def sql(self) -> str:
        """What Spark makes of a record."""
        value = "true" if self.field is None else quoted(self.field)
        return f"CASE WHEN {TOPIC} = {literal(self.input)} THEN {value} END AS {quoted(self.name)}"

    def of(self, elements: pa.Table) -> pa.Array | pa.ChunkedArray:
        """What is made of changes."""
        ours = pc.equal(elements.column(INPUT), self.input)
        if self.field is None:
            return pc.if_else(ours, True, pa.scalar(None, pa.bool_()))
        column = elements.column(self.field)
        return pc.if_else(ours, column, pa.scalar(None, column.type))


def one_sided(outputs: Iterable[Output]) -> tuple[OneSided, ...]:
    """The columns that restricted aggregates need, each once."""
    found = (column for output in outputs for column in _columns(output.of))
    return tuple(dict.fromkeys(found))


def unrestricted(output: Output) -> Output:
    """The same output over the columns that only elements of its input have."""
    if not isinstance(output.of, OfInput):
        return output
    return Output(output.name, _renamed(output.of.of, output.of.input))


def _columns(aggregate: Aggregate) -> list[OneSided]:
    if not isinstance(aggregate, OfInput):
        return []
    fields: tuple[str | None, ...] = aggregate_fields(aggregate.of)
    return [OneSided(aggregate.input, name) for name in fields or (None,)]


def _renamed(aggregate: Aggregate, input_: str) -> Aggregate:
    def named(field: str | None) -> str:
        return OneSided(input_, field).name

    match aggregate:
        case Count(field):
            return Count(named(field))
        case TopN(field=field, by=by):
            return replace(aggregate, field=named(field), by=None if by is None else named(by))
        case Custom() | Members() | OfInput():
            raise TypeError(f"{aggregate} is of no input alone")
        case _:
            return replace(aggregate, field=named(aggregate.field))
