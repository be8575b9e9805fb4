"""What is known of the elements that an aggregate is to be of."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.aggregates.accumulator import Part
from penstock.pipelines.fold.aggregates.merges import Added
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.state.columns import Ints

WEIGHT = "_weight"
"""The column that says of a change how often its element counts: 1, or -1 to take one back."""


@dataclass(frozen=True)
class Setting:
    """The types of fields; whether elements are changes with a weight; whether they are of several inputs."""

    types: Mapping[str, pa.DataType]
    changes: bool = False
    several: bool = False

    def counted(self, name: str, field: str | None = None) -> Part:
        """The part that counts elements, or those in which a field has a value."""
        return Part(
            name, self._count_sql(field), pa.int64(), Added(name), lambda e: self.weights(e, field), 0
        )

    def weights(self, elements: pa.Table, field: str | None = None) -> Ints:
        """How often each element counts; not at all where the field is null."""
        weights = np.ones(elements.num_rows, np.int64)
        if self.changes:
            weights = np.array(elements.column(WEIGHT), np.int64)
        return weights if field is None else weights * valid(elements, field)

    def _count_sql(self, field: str | None) -> str:
        if not self.changes:
            return "count(1)" if field is None else f"count({quoted(field)})"
        counting = WEIGHT if field is None else f"CASE WHEN {quoted(field)} IS NOT NULL THEN {WEIGHT} END"
        return f"coalesce(sum({counting}), 0)"


def valid(elements: pa.Table, field: str) -> Ints:
    """1 for each element in which the field has a value, 0 for the others."""
    return np.asarray(pc.is_valid(elements.column(field)), np.int64)
