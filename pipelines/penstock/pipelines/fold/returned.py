"""What a stage with a function of the user's keeps of a key, and the columns that the function gives."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.aggregates import Accumulator
from penstock.pipelines.fold.rows import Slot
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering, memory_columns
from penstock.pipelines.state.columns import BEFORE_ALL

REMEMBERED = (
    Slot("memory", pa.binary(), None),
    Slot("timers", pa.binary(), None),
    Slot("newest", pa.int64(), BEFORE_ALL),
)
"""What is kept of a key: what the function remembers and the timers that wait, both packed, and the newest time."""

MEMORY = "memory_"
"""What the columns begin with in which a vectorised function's state is kept."""

RECORDS = "records_to_come"
"""The column of records that wait until the watermark has passed them, by time and then by address."""

PLACE = (
    pa.field("_topic", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
    pa.field("_time", pa.int64()),
)

IS_KNOWN = "has_memory"
WAITING = pa.list_(
    pa.struct([pa.field("at", pa.int64()), pa.field("clock", pa.string()), pa.field("name", pa.string())])
)

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


def remembered(window: Remembering, told: Iterable[pa.Field]) -> list[Slot]:
    """What is kept of a key; where records are `told` in order of event time, those that wait as well."""
    if window.by_time:
        return [*REMEMBERED, Slot(RECORDS, pa.list_(pa.struct([*PLACE, *told])), None)]
    if not window.vectorised:
        return list(REMEMBERED)
    fields = [Slot(f"{MEMORY}{field.name}", field.type, None) for field in remembered_fields(window)]
    has, timers = Slot(IS_KNOWN, pa.bool_(), initial=False), Slot("timers", WAITING, None)
    return [has, *fields, timers, Slot("newest", pa.int64(), BEFORE_ALL)]


def remembered_fields(window: Remembering) -> Sequence[pa.Field]:
    """The fields of the state of a vectorised function."""
    columns = memory_columns(window.state.resolve())
    return [pa.field(each.name, arrow_type(each.type, f"remember.state.{each.name}")) for each in columns]


def returned(window: Remembering | Relayed) -> Iterator[Accumulator]:
    """The columns of the function's rows, or of others' panes, in the place of aggregates: nothing accumulates."""
    columns, place = (
        (window.columns, "read_panes.columns")
        if isinstance(window, Relayed)
        else (window.columns, "remember.returns")
    )
    for column in columns:
        kind = arrow_type(column.type, f"{place}.{column.name}")
        yield Accumulator(column.name, kind, (), lambda _rows: _none())


def _none() -> Any:
    raise AssertionError("the rows of a function are not computed from state")
