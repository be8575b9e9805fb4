"""The columns of every state, whatever its stage stores beside them."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

GROUP_HI: Final = "group_hi"
GROUP_LO: Final = "group_lo"
DUE_EVENT: Final = "due_event"
DUE_CLOCK: Final = "due_clock"
DROPPED: Final = "dropped"

MAX_TIMESTAMP_MS: Final = int(np.iinfo(np.int64).max)
"""A due time that never comes; also the watermark at the end of input."""
MIN_TIMESTAMP_MS: Final = int(np.iinfo(np.int64).min)
"""The watermark before the first record."""

STATE_HEADER: Final = pa.schema(
    [
        pa.field(GROUP_HI, pa.uint64(), nullable=False),
        pa.field(GROUP_LO, pa.uint64(), nullable=False),
        pa.field(DUE_EVENT, pa.int64(), nullable=False),
        pa.field(DUE_CLOCK, pa.int64(), nullable=False),
        pa.field(DROPPED, pa.bool_(), nullable=False),
    ]
)

Int64Array = npt.NDArray[np.int64]
HashArray = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]


def int_column(table: pa.Table, column: str) -> Int64Array:
    """Return an integer column as numpy, without a copy if the table has one chunk, as a run has."""
    values: Int64Array = _column_to_numpy(table, column)
    return values


def hash_column(table: pa.Table, column: str) -> HashArray:
    """Return a hash column as numpy."""
    values: HashArray = _column_to_numpy(table, column)
    return values


def bool_column(table: pa.Table, column: str) -> BoolArray:
    """Return a boolean column as numpy. Arrow packs booleans into bits, so this copies."""
    values: BoolArray = _column_to_numpy(table, column)
    return values


def _column_to_numpy(table: pa.Table, column: str) -> Any:
    data = table.column(column)
    chunk = data.chunk(0) if data.num_chunks == 1 else data.combine_chunks()
    return chunk.to_numpy(zero_copy_only=False)
