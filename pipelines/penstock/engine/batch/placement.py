"""Where a batch is accepted: on the driver while its data fits into a budget of bytes, else in parts on executors.

The data of a batch is known in advance: the partials, which executors measure when there may be many, and
the rows of the state that are due. Both placements use the same files, so a stream can switch with any batch.
"""

from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.batch.part_execution import PartExecutor
from penstock.engine.operators.compiled_stage import CompiledStage

DRIVER_BUDGET_BYTES = 256 * 2**20

FIXED_VALUE_BYTES, TEXT_VALUE_BYTES, LIST_VALUE_BYTES = 8, 40, 200
"""Estimated bytes of a value that is not measured: a number; a text or packed value; a list."""


@dataclass(frozen=True)
class Placement:
    """The driver's budget, and the executor of what exceeds it; without one everything is processed here."""

    budget_bytes: int = DRIVER_BUDGET_BYTES
    part_executor: PartExecutor | None = None

    def may_exceed_budget(self, stage: CompiledStage, record_count: int) -> bool:
        """Whether the partials of this many records must be measured before they are fetched."""
        return (
            self.part_executor is not None
            and record_count * estimate_row_bytes(stage.partial_schema) > self.budget_bytes
        )

    def fits_on_driver(
        self, stage: CompiledStage, partial_count: int, due_rows: int, partial_bytes: int = 0
    ) -> bool:
        """Whether these partials and due rows are processed on the driver; `partial_bytes` is their size, if known.

        Partials end up in rows of the state, which are at least as large.
        """
        state_row_bytes = estimate_row_bytes(stage.state_schema)
        incoming_bytes = max(partial_count * estimate_row_bytes(stage.partial_schema), partial_bytes)
        total_bytes = (
            incoming_bytes + max(partial_count * state_row_bytes, partial_bytes) + due_rows * state_row_bytes
        )
        return self.part_executor is None or total_bytes <= self.budget_bytes


DRIVER_ONLY = Placement()
"""Everything is processed on the driver."""


def estimate_row_bytes(schema: pa.Schema) -> int:
    """Estimate the size of a row: texts and lists count with a typical size."""
    return sum(_estimate_value_bytes(field.type) for field in schema)


def _estimate_value_bytes(data_type: pa.DataType) -> int:
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return LIST_VALUE_BYTES
    return FIXED_VALUE_BYTES if pa.types.is_primitive(data_type) else TEXT_VALUE_BYTES
