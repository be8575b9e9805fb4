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
class Change:
    """Files to be added and removed in one commit. A change without either is none."""

    adds: Sequence[DataFile] = ()
    removes: Sequence[str] = field(default=())
    given: int | None = None
    """How many rows of results the batch gave, whatever else was written anew; None where that is not asked."""

    @property
    def is_none(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.adds and not self.removes


def change_from(data: Mapping[str, Any]) -> Change:
    """Read a change back from plain data."""
    return Change([DataFile(**file) for file in data["adds"]], list(data["removes"]), data.get("given"))
