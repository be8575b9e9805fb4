"""The context in which an aggregate is built: its column, the types of fields, and what its elements are."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.accumulator import AccumulatorPart
from penstock.engine.aggregates.mergers import SumMerger
from penstock.engine.definition.predicates import quote_column
from penstock.engine.errors import DefinitionError
from penstock.engine.state.header_columns import Int64Array

WEIGHT_COLUMN = "_weight"
"""The weight of a change: 1 to add its element, -1 to retract it."""


@dataclass(frozen=True)
class AggregateContext:
    """The result column of an aggregate, and the elements that it reads.

    With `over_changes`, elements have a weight, and -1 retracts an element. With `has_several_inputs`, the input's
    name is part of the order of elements.
    """

    output: str
    field_types: Mapping[str, pa.DataType]
    over_changes: bool = False
    has_several_inputs: bool = False

    def error(self, problem: object, fix: str) -> DefinitionError:
        """Return the error that names the result column."""
        return DefinitionError(f"aggregate.{self.output}", problem, fix)

    def make_count_part(self, field: str | None = None) -> AccumulatorPart:
        """Return the part that counts elements, or elements with a value in a field."""
        name = f"{self.output}_present"
        return AccumulatorPart(
            name,
            self._count_sql(field),
            pa.int64(),
            SumMerger(name),
            lambda elements: self.element_weights(elements, field),
            0,
        )

    @property
    def weight_sql(self) -> str:
        """The SQL of an element's weight."""
        return WEIGHT_COLUMN if self.over_changes else "1L"

    def element_weights(self, elements: pa.Table, field: str | None = None) -> Int64Array:
        """Return the weight of each element; 0 where the field is null."""
        weights = np.ones(elements.num_rows, np.int64)
        if self.over_changes:
            weights = np.array(elements.column(WEIGHT_COLUMN), np.int64)
        return weights if field is None else weights * flag_valid(elements, field)

    def _count_sql(self, field: str | None) -> str:
        if not self.over_changes:
            return "count(1)" if field is None else f"count({quote_column(field)})"
        weight_sql = (
            WEIGHT_COLUMN
            if field is None
            else f"CASE WHEN {quote_column(field)} IS NOT NULL THEN {WEIGHT_COLUMN} END"
        )
        return f"coalesce(sum({weight_sql}), 0)"


def flag_valid(elements: pa.Table, field: str) -> Int64Array:
    """Return 1 for each element with a value in the field, else 0."""
    return np.asarray(pc.is_valid(elements.column(field)), np.int64)
