"""What is known of the elements that an aggregate is to be of."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.accumulator import AccumulatorPart
from penstock.engine.aggregates.mergers import SumMerger
from penstock.engine.plan.predicates import quote_column
from penstock.engine.state.header_columns import Int64Array

WEIGHT_COLUMN = "_weight"
"""The column that says of a change how often its element counts: 1, or -1 to take one back."""


@dataclass(frozen=True)
class AggregateContext:
    """The types of fields; whether elements are changes with a weight; whether they are of several inputs."""

    field_types: Mapping[str, pa.DataType]
    over_changes: bool = False
    has_several_inputs: bool = False

    def make_count_part(self, name: str, field: str | None = None) -> AccumulatorPart:
        """The part that counts elements, or those in which a field has a value."""
        return AccumulatorPart(
            name,
            self._count_sql(field),
            pa.int64(),
            SumMerger(name),
            lambda elements: self.element_weights(elements, field),
            0,
        )

    def element_weights(self, elements: pa.Table, field: str | None = None) -> Int64Array:
        """How often each element counts; not at all where the field is null."""
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
    """1 for each element in which the field has a value, 0 for the others."""
    return np.asarray(pc.is_valid(elements.column(field)), np.int64)
