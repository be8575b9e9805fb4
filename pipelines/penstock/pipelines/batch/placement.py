"""Where a batch is folded: here, while what it touches fits into a budget of bytes, and in parts elsewhere if not.

What a batch touches is known before it is folded: the partials, which are weighed where they were made when there
may be many, and the rows of the state that are due. Both placements work on the same files, so a stream moves
from one to the other with any batch.
"""

from dataclasses import dataclass

import pyarrow as pa

from penstock.pipelines.batch.parts import Spreader
from penstock.pipelines.fold.stage import ReadyStage

BUDGET_BYTES = 256 * 2**20

FIXED, TEXT, LIST = 8, 40, 200
"""Bytes that a value is reckoned to take in the hands of the fold where nobody has weighed it: a number, a text or
a packed value, a list."""


@dataclass(frozen=True)
class Placement:
    """What fits here, and who folds what does not; without a spreader all is folded here."""

    budget: int = BUDGET_BYTES
    spreader: Spreader | None = None

    def may_not_fit(self, stage: ReadyStage, records: int) -> bool:
        """Whether the partials of so many records have to be weighed before they are fetched."""
        return self.spreader is not None and records * row_bytes(stage.partial_columns) > self.budget

    def fits(self, stage: ReadyStage, partials: int, due: int, weight: int = 0) -> bool:
        """Whether so many partials, and rows that are due, are folded here; `weight` is their bytes, where known.

        What partials say goes into rows of the state, which are no lighter.
        """
        kept = row_bytes(stage.state_columns)
        came = max(partials * row_bytes(stage.partial_columns), weight)
        taken = came + max(partials * kept, weight) + due * kept
        return self.spreader is None or taken <= self.budget


HERE = Placement()
"""All is folded here."""


def row_bytes(schema: pa.Schema) -> int:
    """What a row of these columns takes, about: texts and lists are reckoned as they mostly are."""
    return sum(_value_bytes(field.type) for field in schema)


def _value_bytes(kind: pa.DataType) -> int:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return LIST
    return FIXED if pa.types.is_primitive(kind) else TEXT
