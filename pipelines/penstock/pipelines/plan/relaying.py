"""Panes that go through a topic: what a stage publishes, and what another stream reads as changes."""

from dataclasses import dataclass

from penstock.pipelines.plan.checks import called_as_a_place, require
from penstock.pipelines.plan.source import Column
from penstock.pipelines.plan.types import check_words

KIND = "kind"
CHANGE = "pane_change"
PASSED = "pane_passed"
LATENESS = "pane_lateness"

RELAYED = (
    Column("window_start", "BIGINT"),
    Column("window_end", "BIGINT"),
    Column(KIND, "STRING", required=True),
    Column(CHANGE, "BIGINT", required=True),
    Column(PASSED, "BIGINT", required=True),
    Column(LATENESS, "BIGINT", required=True),
)
"""What a published pane has beside its key and its values, as far as a reader needs it.

`pane_change` is 1 for a pane that brings an element, -1 for one that takes it back, 0 for one that changes nothing.
`pane_passed` is a watermark: of a window that it has passed by more than `pane_lateness` nothing comes any more. It
is that before the batch for a pane, and that after it for the record, of the kind `watermark`, which ends a batch
in each partition: so no pane of a batch is behind what was read of that batch before.
"""


@dataclass(frozen=True)
class Published:
    """A topic to which a stage's panes go, each once for whoever reads only what is committed."""

    topic: str

    def __post_init__(self) -> None:
        called_as_a_place(self.topic, "publish")


@dataclass(frozen=True)
class Relayed:
    """In the place of windows: panes as another stream published them, in the windows that they have already."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        fix = "Say the key and the values, as in columns={'device': 'STRING', 'readings': 'BIGINT'}"
        require(len(self.columns) > 0, "read_panes.columns", "no columns", fix)
        check_words(self.columns, "read_panes.columns")
        ours = {column.name for column in RELAYED}
        for column in self.columns:
            fix = "Leave it out: every pane has it"
            require(column.name not in ours, f"read_panes.columns.{column.name}", "a column of ours", fix)
