"""Where panes go, as data. Every sink takes a batch once, by (application, batch id)."""

from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.pipelines.plan.checks import called_as_a_place, named
from penstock.pipelines.plan.source import ADDED


@dataclass(frozen=True)
class PaneLog:
    """Every pane row, appended; of a function with several outputs, those that it sends to one of them."""

    table: str
    output: str | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        called_as_a_place(self.table, "write.table")
        if self.output is not None:
            named(self.output, "write.output")


@dataclass(frozen=True)
class FinalPanes:
    """Only panes after which nothing comes for their window, appended."""

    table: str

    def __post_init__(self) -> None:
        called_as_a_place(self.table, "write.table")


@dataclass(frozen=True)
class LatestValues:
    """One row per key and window: the newest value; a window that was retracted or replaced has none."""

    table: str

    def __post_init__(self) -> None:
        called_as_a_place(self.table, "write.table")


@dataclass(frozen=True)
class CompleteTable:
    """The whole result, written anew with each batch that changes it: for small results."""

    table: str

    def __post_init__(self) -> None:
        called_as_a_place(self.table, "write.table")


Sink: TypeAlias = PaneLog | FinalPanes | LatestValues | CompleteTable
