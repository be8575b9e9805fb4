"""The columns that every state has, whatever its stage keeps beside them."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

GROUP_HI: Final = "group_hi"
GROUP_LO: Final = "group_lo"
DUE_EVENT: Final = "due_event"
DUE_CLOCK: Final = "due_clock"
DROPPED: Final = "dropped"

NEVER: Final = int(np.iinfo(np.int64).max)
"""A due time that does not come; also the watermark of an input that has ended."""
BEFORE_ALL: Final = int(np.iinfo(np.int64).min)
"""The watermark before the first record."""

HEADER: Final = pa.schema(
    [
        pa.field(GROUP_HI, pa.uint64(), nullable=False),
        pa.field(GROUP_LO, pa.uint64(), nullable=False),
        pa.field(DUE_EVENT, pa.int64(), nullable=False),
        pa.field(DUE_CLOCK, pa.int64(), nullable=False),
        pa.field(DROPPED, pa.bool_(), nullable=False),
    ]
)

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


def integers(table: pa.Table, column: str) -> Ints:
    """An integer column as numpy; without a copy where the table is one piece, as a run's is."""
    values: Ints = _numpy(table, column)
    return values


def hashes(table: pa.Table, column: str) -> Hashes:
    """A hash column as numpy."""
    values: Hashes = _numpy(table, column)
    return values


def mask(table: pa.Table, column: str) -> Mask:
    """A column of booleans as numpy; they are packed in Arrow, so this is a copy."""
    values: Mask = _numpy(table, column)
    return values


def _numpy(table: pa.Table, column: str) -> Any:
    data = table.column(column)
    chunk = data.chunk(0) if data.num_chunks == 1 else data.combine_chunks()
    return chunk.to_numpy(zero_copy_only=False)
