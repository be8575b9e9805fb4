"""The change of a table by a batch: the files to add, and the files they replace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DataFile:
    """A data file in a table's folder, with its name and the facts that Delta's log needs."""

    path: str
    size: int
    rows: int
    statistics: str
    written_at_ms: int


@dataclass(frozen=True)
class TableChange:
    """The files to add and remove in one commit. A change without files is not committed."""

    adds: Sequence[DataFile] = ()
    removes: Sequence[str] = field(default=())
    result_rows: int | None = None
    """The number of result rows of the batch, without rows that were only rewritten; None if not counted."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.adds and not self.removes


def parse_table_change(plain_change: Mapping[str, Any]) -> TableChange:
    """Build a change from decoded JSON."""
    return TableChange(
        [DataFile(**file) for file in plain_change["adds"]],
        list(plain_change["removes"]),
        plain_change.get("result_rows"),
    )
