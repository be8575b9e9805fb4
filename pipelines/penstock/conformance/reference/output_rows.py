"""What comes out: rows of panes, rows of the late table, and accounts. They are compared row for row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from penstock.conformance.reference.input_records import Instant, RecordAddress

PaneTiming: TypeAlias = Literal["early", "on_time", "late"]
RowKind: TypeAlias = Literal["insert", "retract"]
LateReason: TypeAlias = Literal["closed", "finished", "no_window"]


@dataclass(frozen=True)
class Pane:
    """One row: what a window says now, or no longer says.

    `values` are pairs of column and value, in the order of the plan. A retraction carries the values that it
    takes back, and the number and timing of the pane in whose favour it does so. `number` counts a key's order
    windows and is None for windows of time.
    """

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    values: tuple[tuple[str, Any], ...]
    pane_index: int
    timing: PaneTiming
    on_time_index: int
    final: bool
    kind: RowKind
    records: int
    batch: int
    clock: int
    watermark: Instant
    window_number: int | None = None
    is_restatement: bool = False
    """Whether it inserts what stands already, because it is on time or final: then it is no change."""


@dataclass(frozen=True)
class ReplacedWindow:
    """A window whose panes another window's panes stand for from now on (where nothing is retracted)."""

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    by_start: Instant
    by_end: Instant
    batch: int


@dataclass(frozen=True)
class LateRow:
    """A record that one window did not take: which, why, and by how much it missed (0 where time is not why)."""

    address: RecordAddress
    key: tuple[Any, ...]
    time: int
    start: Instant
    end: Instant
    reason: LateReason
    watermark: Instant
    missed_by: Instant
    batch: int


@dataclass(frozen=True)
class QuarantinedRow:
    """A record that was not understood, and why."""

    address: RecordAddress
    reason: str
    batch: int


@dataclass
class PartitionCounts:
    """What became of the records of one partition in one batch."""

    read: int = 0
    folded: int = 0
    late: int = 0
    quarantined: int = 0
    duplicate: int = 0
    filtered: int = 0

    @property
    def is_balanced(self) -> bool:
        """Tell whether every record is accounted for once."""
        return self.read == self.folded + self.late + self.quarantined + self.duplicate + self.filtered


@dataclass(frozen=True)
class EvaluatedStage:
    """What one batch brought about in a stage that reads records beside the first."""

    late: tuple[LateRow, ...]
    accounts: Mapping[tuple[str, int], PartitionCounts]


@dataclass(frozen=True)
class EvaluatedBatch:
    """All that one batch brought about."""

    batch: int
    clock: int
    watermark: Instant
    panes: tuple[Pane, ...]
    replaced: tuple[ReplacedWindow, ...]
    late: tuple[LateRow, ...]
    quarantined: tuple[QuarantinedRow, ...]
    accounts: Mapping[tuple[str, int], PartitionCounts]
    stage_panes: Mapping[str, tuple[Pane, ...]] = field(default_factory=dict)
    """The panes of stages after the first, by their names."""
    other_stages: Mapping[str, EvaluatedStage] = field(default_factory=dict)
    """What else there is to say of other stages that read records, by their names."""
