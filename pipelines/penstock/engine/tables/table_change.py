"""What a batch does to a table: files that come in, and files whose rows they replace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DataFile:
    """A file of rows in a table's folder, by its name, with what Delta wants to know of it."""

    path: str
    size: int
    rows: int
    statistics: str
    written_at_ms: int


@dataclass(frozen=True)
class TableChange:
    """Files to be added and removed in one commit. A change without either is none."""

    adds: Sequence[DataFile] = ()
    removes: Sequence[str] = field(default=())
    result_rows: int | None = None
    """How many rows of results the batch gave, whatever else was written anew; None where that is not asked."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.adds and not self.removes


def parse_table_change(plain_change: Mapping[str, Any]) -> TableChange:
    """Read a change back from plain data."""
    return TableChange(
        [DataFile(**file) for file in plain_change["adds"]],
        list(plain_change["removes"]),
        plain_change.get("result_rows"),
    )
