"""Distinct: the number of distinct values, exact or approximate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.approximate_distinct import build_approximate_distinct
from penstock.engine.aggregates.field_types import require_comparable
from penstock.engine.aggregates.list_columns import ListMerger, to_object_column
from penstock.engine.aggregates.list_parts import make_list_part
from penstock.engine.aggregates.values_aggregate import FieldValuesAggregate
from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.predicates import quote_column


@dataclass(frozen=True)
class Distinct(FieldValuesAggregate):
    """Number of distinct values: exact, or approximate by a HyperLogLog sketch with 2 ** `precision` registers."""

    function_name: ClassVar[str] = "distinct"

    exact: bool = True
    precision: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = isinstance(self.precision, int) and 4 <= self.precision <= 21
        require(is_valid, "aggregate.distinct.precision", self.precision, "Give 4 to 21")

    @property
    def visible_fields(self) -> tuple[str, ...]:
        """None: a number shows no value."""
        return ()

    def describe(self, *, panes: bool = False) -> str:
        """Describe the number. Over panes all values are stored, so that it is exact."""
        return f"number of distinct {self.field}" + (
            "" if self.exact or panes else ", approximate (HyperLogLog)"
        )

    def describe_state(self) -> str:
        """Describe the stored values, or the sketch."""
        return "every distinct value" if self.exact else f"a sketch of {2**self.precision} registers"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of a number of values."""
        require_comparable(self.field, context)
        return pa.int64()

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the set of all values, or the sketch."""
        result_type = self.result_type(context)
        if not self.exact:
            return build_approximate_distinct(context, self.field, self.precision)
        name = f"{context.output}_values"
        merger = ListMerger((name,), lambda entries: list(dict.fromkeys(entries)))
        collect_sql = f"collect_set({quote_column(self.field)})"
        value_type = context.field_types[self.field]
        part = make_list_part(name, collect_sql, value_type, merger, self.field, self.field)

        def show(rows: Rows) -> NumpyColumn:
            return to_object_column([len(values or ()) for values in rows[name].tolist()]).astype("int64")

        return Accumulator(context.output, result_type, (part,), show)

    def from_values(self, values: Sequence[Any]) -> Any:
        """Return the exact number."""
        return len(dict.fromkeys(values))


@keyword(
    "distinct",
    synonyms=(
        "countdistinct",
        "distinctcount",
        "approxcountdistinct",
        "nunique",
        "unique",
        "uniques",
        "cardinality",
    ),
)
def distinct(field: str, exact: bool = True, precision: int = 12) -> Distinct:
    """Count the distinct values of a field, nulls left out.

    Args:
        field: the name of a field.
        exact: True counts exactly, and stores every value. False uses a HyperLogLog sketch of a fixed size.
        precision: the sketch has 2 ** precision registers, 4 to 21. 12 has an error of about 1.6 percent.

    Example:
        aggregate(users=distinct("user"), visitors=distinct("cookie", exact=False))

    Not promised: that a sketch can be retracted. A stage over retracted panes stores every value.
    """
    return Distinct(field, exact, precision)
