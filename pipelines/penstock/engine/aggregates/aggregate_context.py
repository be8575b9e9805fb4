"""The context in which an aggregate is built: field types, and the kind of its elements."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.accumulator import AccumulatorPart
from penstock.engine.aggregates.mergers import SumMerger
from penstock.engine.definition.predicates import quote_column
from penstock.engine.state.header_columns import Int64Array

WEIGHT_COLUMN = "_weight"
"""The weight of a change: 1 to add its element, -1 to retract it."""


@dataclass(frozen=True)
class AggregateContext:
    """The field types; whether elements are weighted changes; and whether they come from several inputs."""

    field_types: Mapping[str, pa.DataType]
    over_changes: bool = False
    has_several_inputs: bool = False

    def make_count_part(self, name: str, field: str | None = None) -> AccumulatorPart:
        """Return the part that counts elements, or elements with a value in a field."""
        return AccumulatorPart(
            name,
            self._count_sql(field),
            pa.int64(),
            SumMerger(name),
            lambda elements: self.element_weights(elements, field),
            0,
        )

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
