"""Output rows: panes, late rows and counts. They are compared row by row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from penstock.conformance.reference.input_records import Instant, RecordAddress

PaneTiming: TypeAlias = Literal["early", "on_time", "late"]
RowKind: TypeAlias = Literal["insert", "retract"]
LateReason: TypeAlias = Literal["closed", "finished", "no_window"]


@dataclass(frozen=True)
class Pane:
    """One row: an insert or a retraction of a window's values.

    `values` are pairs of column and value, in the order of the plan. A retraction has the values that it
    retracts, and the number and timing of the pane that replaces it. `number` is the number of an order window
    within its key; None for time windows.
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
    """Whether it repeats current values because it is an on-time or final pane; then it is no change."""


@dataclass(frozen=True)
class ReplacedWindow:
    """A window whose panes are replaced by those of another window, without retractions."""

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    by_start: Instant
    by_end: Instant
    batch: int


@dataclass(frozen=True)
class LateRow:
    """A record that one window rejected: the reason, and by how much it was late (0 for other reasons)."""

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
    """An invalid record, with the reason."""

    address: RecordAddress
    reason: str
    batch: int


@dataclass
class PartitionCounts:
    """The fates of the records of one partition in one batch."""

    read: int = 0
    accepted: int = 0
    late: int = 0
    quarantined: int = 0
    duplicate: int = 0
    filtered: int = 0

    @property
    def is_balanced(self) -> bool:
        """Tell whether every record is counted exactly once."""
        return self.read == self.accepted + self.late + self.quarantined + self.duplicate + self.filtered


@dataclass(frozen=True)
class EvaluatedStage:
    """The output of a batch in a source stage other than the first."""

    late: tuple[LateRow, ...]
    accounts: Mapping[tuple[str, int], PartitionCounts]


@dataclass(frozen=True)
class EvaluatedBatch:
    """The output of one batch."""

    batch: int
    clock: int
    watermark: Instant
    panes: tuple[Pane, ...]
    replaced: tuple[ReplacedWindow, ...]
    late: tuple[LateRow, ...]
    quarantined: tuple[QuarantinedRow, ...]
    accounts: Mapping[tuple[str, int], PartitionCounts]
    stage_panes: Mapping[str, tuple[Pane, ...]] = field(default_factory=dict)
    """The panes of stages after the first, by stage name."""
    other_stages: Mapping[str, EvaluatedStage] = field(default_factory=dict)
    """The other output of further source stages, by name."""
