"""The order of elements: by event time and then address, or by address alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

ValueOrder: TypeAlias = Literal["event_time", "arrival"]
VALUE_ORDERS: tuple[str, ...] = ("event_time", "arrival")


@dataclass(frozen=True)
class EntryColumn:
    """A column of a list entry: its name, the SQL that reads it, and its type."""

    name: str
    sql: str
    type: pa.DataType


EVENT_TIME = EntryColumn("time", "_time", pa.int64())
TOPIC = EntryColumn("topic", "_topic", pa.string())
PARTITION = EntryColumn("partition", "_partition", pa.int32())
OFFSET = EntryColumn("offset", "_offset", pa.int64())


def select_order_columns(order: ValueOrder, *, has_several_inputs: bool) -> tuple[EntryColumn, ...]:
    """Return the columns that order elements. The topic is needed only with several inputs."""
    address_columns = (TOPIC, PARTITION, OFFSET) if has_several_inputs else (PARTITION, OFFSET)
    return address_columns if order == "arrival" else (EVENT_TIME, *address_columns)


def sql_struct(*columns: str) -> str:
    """Return SQL for a struct of columns, which compares from left to right."""
    return f"struct({', '.join(columns)})"


def alias_columns(entry_columns: Sequence[EntryColumn]) -> list[str]:
    """Return SQL for each column under its name."""
    return [f"{entry_column.sql} AS {entry_column.name}" for entry_column in entry_columns]
