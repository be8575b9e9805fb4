"""What a backend gets for a batch, and what it returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from penstock.conformance.reference import LateRow, Pane, QuarantinedRow, ReplacedWindow
from penstock.testing.topic_records import TopicRecord


@dataclass(frozen=True)
class TopicBatch:
    """The records of one batch, and its clock. `is_last` ends the input: the watermark becomes infinite."""

    number: int
    clock: int
    records: tuple[TopicRecord, ...]
    partition_count: int
    is_last: bool = False


@dataclass(frozen=True)
class ObservedRows:
    """The rows of one batch: panes and late records by stage, and quarantined records."""

    panes: Mapping[str, tuple[Pane, ...]]
    replaced: tuple[ReplacedWindow, ...]
    late: Mapping[str, tuple[LateRow, ...]]
    quarantined: tuple[QuarantinedRow, ...]


class PipelineBackend(Protocol):
    """Runs the batches of one pipeline, one after the other."""

    def run(self, batch: TopicBatch) -> ObservedRows:
        """Run a batch, and return its rows."""
        ...
