"""Where panes go, as data. Every sink takes a batch once, by (application, batch id)."""

from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.engine.plan.sources import OMITTED_AT_DEFAULT
from penstock.engine.plan.validation.argument_checks import require_name, require_storage_name


@dataclass(frozen=True)
class PaneLog:
    """Every pane row, appended; of a function with several outputs, those that it sends to one of them."""

    table: str
    output: str | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")
        if self.output is not None:
            require_name(self.output, "write.output")


@dataclass(frozen=True)
class FinalPanes:
    """Only panes after which nothing comes for their window, appended."""

    table: str

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")


@dataclass(frozen=True)
class LatestValues:
    """One row per key and window: the newest value; a window that was retracted or replaced has none."""

    table: str

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")


@dataclass(frozen=True)
class CompleteTableSink:
    """The whole result, written anew with each batch that changes it: for small results."""

    table: str

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")


Sink: TypeAlias = PaneLog | FinalPanes | LatestValues | CompleteTableSink
