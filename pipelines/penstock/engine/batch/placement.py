"""Where a batch is folded: here, while what it touches fits into a budget of bytes, and in parts elsewhere if not.

What a batch touches is known before it is folded: the partials, which are weighed where they were made when there
may be many, and the rows of the state that are due. Both placements work on the same files, so a stream moves
from one to the other with any batch.
"""

from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.batch.part_execution import PartExecutor
from penstock.engine.operators.compiled_stage import CompiledStage

DRIVER_BUDGET_BYTES = 256 * 2**20

FIXED_VALUE_BYTES, TEXT_VALUE_BYTES, LIST_VALUE_BYTES = 8, 40, 200
"""Bytes that a value is reckoned to take in the hands of the fold where nobody has weighed it: a number, a text or
a packed value, a list."""


@dataclass(frozen=True)
class Placement:
    """What fits here, and who folds what does not; without a spreader all is folded here."""

    budget_bytes: int = DRIVER_BUDGET_BYTES
    part_executor: PartExecutor | None = None

    def may_exceed_budget(self, stage: CompiledStage, record_count: int) -> bool:
        """Whether the partials of so many records have to be weighed before they are fetched."""
        return (
            self.part_executor is not None
            and record_count * estimate_row_bytes(stage.partial_schema) > self.budget_bytes
        )

    def fits_on_driver(
        self, stage: CompiledStage, partial_count: int, due_rows: int, partial_bytes: int = 0
    ) -> bool:
        """Whether so many partials, and rows that are due, are folded here; `weight` is their bytes, where known.

        What partials say goes into rows of the state, which are no lighter.
        """
        state_row_bytes = estimate_row_bytes(stage.state_schema)
        incoming_bytes = max(partial_count * estimate_row_bytes(stage.partial_schema), partial_bytes)
        total_bytes = (
            incoming_bytes + max(partial_count * state_row_bytes, partial_bytes) + due_rows * state_row_bytes
        )
        return self.part_executor is None or total_bytes <= self.budget_bytes


DRIVER_ONLY = Placement()
"""All is folded here."""


def estimate_row_bytes(schema: pa.Schema) -> int:
    """What a row of these columns takes, about: texts and lists are reckoned as they mostly are."""
    return sum(_estimate_value_bytes(field.type) for field in schema)


def _estimate_value_bytes(data_type: pa.DataType) -> int:
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return LIST_VALUE_BYTES
    return FIXED_VALUE_BYTES if pa.types.is_primitive(data_type) else TEXT_VALUE_BYTES
