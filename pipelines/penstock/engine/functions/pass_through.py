"""The stateless function behind `rows()`: it emits each record as a row.

It keeps no state, so its rows do not depend on how records are split into batches.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.functions.vectorized import KeyBatchContext, KeyBatchUpdate


@dataclass(frozen=True)
class NoState:
    """An empty state. A state needs a field, so it has one that is always null."""

    unused: bool | None = None


def emit_each_record(batch: "KeyBatchContext") -> "KeyBatchUpdate":
    """Return a row for each record, at its event time."""
    import numpy as np  # definitions that refer to this function must not import Arrow
    import pyarrow as pa

    from penstock.engine.functions.vectorized import (
        HAS_STATE_COLUMN,
        RECORD_TIME_COLUMN,
        ROW_TIME_COLUMN,
        KeyBatchUpdate,
    )

    key_columns = batch.keys.column_names
    rows = batch.records.drop_columns(key_columns).rename_columns(
        [
            ROW_TIME_COLUMN if name == RECORD_TIME_COLUMN else name
            for name in batch.records.column_names
            if name not in key_columns
        ]
    )
    key_count = batch.states.num_rows
    empty_states = {HAS_STATE_COLUMN: np.zeros(key_count, bool), "unused": pa.nulls(key_count, pa.bool_())}
    return KeyBatchUpdate(pa.table(empty_states), rows)
