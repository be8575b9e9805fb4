"""Sinks of panes, as data. Every sink applies a batch exactly once, by application and batch id."""

from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.engine.definition.argument_checks import require_name, require_storage_name
from penstock.engine.plan.sources import OMITTED_AT_DEFAULT


@dataclass(frozen=True)
class PaneLog:
    """A table to which every pane is appended; with `output`, the rows of one side output."""

    table: str
    output: str | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")
        if self.output is not None:
            require_name(self.output, "write.output")


@dataclass(frozen=True)
class FinalPanes:
    """A table to which only the final pane of each window is appended."""

    table: str

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")


@dataclass(frozen=True)
class LatestValues:
    """A table with the latest value per key and window. Retracted and replaced windows have no row."""

    table: str

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")


@dataclass(frozen=True)
class CompleteTableSink:
    """A table that is overwritten with the complete result in each batch that changes it. For small results."""

    table: str

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")


Sink: TypeAlias = PaneLog | FinalPanes | LatestValues | CompleteTableSink
