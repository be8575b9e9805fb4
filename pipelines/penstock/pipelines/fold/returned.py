"""What a stage with a function of the user's keeps of a key, and the columns that the function gives."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.aggregates import Accumulator
from penstock.pipelines.fold.rows import Slot
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.state.columns import BEFORE_ALL

REMEMBERED = (
    Slot("memory", pa.binary(), None),
    Slot("timers", pa.binary(), None),
    Slot("newest", pa.int64(), BEFORE_ALL),
)
"""What is kept of a key: what the function remembers and the timers that wait, both packed, and the newest time."""

TYPES = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BINARY": pa.binary(),
}


def arrow_type(name: str, field: str) -> pa.DataType:
    """The Arrow type of a word of Spark's. Raises DefinitionError for one that is not known."""
    word = name.strip().upper()
    if word.startswith("ARRAY<") and word.endswith(">"):
        return pa.list_(arrow_type(word[6:-1], field))
    if word not in TYPES:
        raise DefinitionError(field, f"{name!r}", f"Write one of: {', '.join(TYPES)}, or ARRAY<one of them>")
    return TYPES[word]


def returned(window: Remembering) -> Iterator[Accumulator]:
    """The columns of the function's rows, in the place of aggregates; nothing is accumulated in them."""
    for column in window.returns:
        kind = arrow_type(column.type, f"remember.returns.{column.name}")
        yield Accumulator(column.name, kind, (), lambda _rows: _none())


def _none() -> Any:
    raise AssertionError("the rows of a function are not computed from state")
