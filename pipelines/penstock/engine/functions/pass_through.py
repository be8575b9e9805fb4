"""Each record as a row of the result: what a stage without windows does, in the words of functions with a memory.

It remembers nothing, so nothing of it is kept between batches, and its rows do not depend on how batches are cut.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.functions.vectorized import KeyBatchContext, KeyBatchUpdate


@dataclass(frozen=True)
class NoState:
    """What is remembered: a state needs a field, and this one is never there."""

    unused: bool | None = None


def emit_each_record(batch: "KeyBatchContext") -> "KeyBatchUpdate":
    """A row for each record, at its event time."""
    import numpy as np  # a definition names this function, and needs no Arrow
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
