"""Panes that go through a topic: what a stage publishes, and what another stream reads as changes."""

from dataclasses import dataclass

from penstock.engine.plan.column_types import check_column_types
from penstock.engine.plan.sources import Column
from penstock.engine.plan.validation.argument_checks import require, require_storage_name

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
"""What a published pane has beside its key and its values, as far as a reader needs it.

`pane_change` is 1 for a pane that brings an element, -1 for one that takes it back, 0 for one that changes nothing.
`pane_passed` is a watermark: of a window that it has passed by more than `pane_lateness` nothing comes any more. It
is that before the batch for a pane, and that after it for the record, of the kind `watermark`, which ends a batch
in each partition: so no pane of a batch is behind what was read of that batch before.
"""


@dataclass(frozen=True)
class ChangelogTopic:
    """A topic to which a stage's panes go, each once for whoever reads only what is committed."""

    topic: str

    def __post_init__(self) -> None:
        require_storage_name(self.topic, "publish")


@dataclass(frozen=True)
class ChangelogWindows:
    """In the place of windows: panes as another stream published them, in the windows that they have already."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        fix = "Say the key and the values, as in columns={'device': 'STRING', 'readings': 'BIGINT'}"
        require(len(self.columns) > 0, "read_panes.columns", "no columns", fix)
        check_column_types(self.columns, "read_panes.columns")
        changelog_names = {column.name for column in CHANGELOG_COLUMNS}
        for column in self.columns:
            fix = "Leave it out: every pane has it"
            require(
                column.name not in changelog_names,
                f"read_panes.columns.{column.name}",
                "a column of ours",
                fix,
            )
