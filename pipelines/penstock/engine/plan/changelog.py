"""Changelog topics: the panes that a stage publishes and another stream reads as changes."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.phrases import format_duration
from penstock.engine.plan.column_types import check_column_types
from penstock.engine.plan.sources import Column
from penstock.engine.windows.window import Window

PANE_KIND_COLUMN = "kind"
PANE_CHANGE_COLUMN = "pane_change"
PANE_WATERMARK_COLUMN = "pane_passed"
PANE_LATENESS_COLUMN = "pane_lateness"

CHANGELOG_COLUMNS = (
    Column("window_start", "BIGINT"),
    Column("window_end", "BIGINT"),
    Column(PANE_KIND_COLUMN, "STRING", required=True),
    Column(PANE_CHANGE_COLUMN, "BIGINT", required=True),
    Column(PANE_WATERMARK_COLUMN, "BIGINT", required=True),
    Column(PANE_LATENESS_COLUMN, "BIGINT", required=True),
)
"""The columns of a published pane that a reader needs, besides its key and values.

`pane_change` is 1 for a pane that inserts an element, -1 for one that retracts it, and 0 for one that changes
nothing. `pane_passed` is a watermark: a window that it has passed by more than `pane_lateness` gets no more panes.
A pane has the watermark before its batch. The record of kind `watermark` that ends a batch in each partition has
the watermark after it. So no pane is behind the watermark that readers have seen before it.
"""


@dataclass(frozen=True)
class ChangelogWindows(Window):
    """Panes that another stream published, read in their own windows instead of new ones."""

    is_record_ordered: ClassVar[bool] = True
    pane_relation: ClassVar[str] = "As changes: a pane inserts an element or retracts it."

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        fix = "Declare the key and the values, as in columns={'device': 'STRING', 'readings': 'BIGINT'}"
        require(len(self.columns) > 0, "read_panes.columns", "no columns", fix)
        check_column_types(self.columns, "read_panes.columns")
        changelog_names = {column.name for column in CHANGELOG_COLUMNS}
        for column in self.columns:
            fix = "Remove it: every pane has this column"
            require(
                column.name not in changelog_names,
                f"read_panes.columns.{column.name}",
                "a reserved column",
                fix,
            )

    def describe(self) -> str:
        """Describe the windows."""
        return "the windows of the panes that it reads"

    def describe_timing(self, lateness: int) -> tuple[str, ...]:
        """Describe how long panes correct a window."""
        correction_time = format_duration(lateness)
        return (
            f"When they arrive; they correct a window for {correction_time} after its end, by their watermark.",
        )

    @property
    def is_event_time_bound(self) -> bool:
        """The published watermark bounds corrections."""
        return True

    @property
    def keeps_state(self) -> bool:
        """Panes are passed on."""
        return False
