"""The rows of a batch, and where an engine writes them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.batch_input import CHECK_COUNTS_SCHEMA
from penstock.engine.batch.lookup_versions import LOOKUP_VERSIONS_SCHEMA
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch_time import BatchTime
from penstock.engine.tables.table_change import TableChange


@dataclass(frozen=True)
class BatchRows:
    """The rows of a batch for its tables. Tables without rows are left out."""

    panes: Mapping[str, pa.Table]
    """The panes of each stage."""
    late: Mapping[str, pa.Table]
    """The records that each first stage refused."""
    quarantined: pa.Table
    accounts: tuple[PartitionAccount, ...]
    """The account of each partition in the first stage that reads it."""
    other_accounts: Mapping[str, tuple[PartitionAccount, ...]] = field(default_factory=dict)
    """The accounts of other first stages that read the same partitions."""
    check_counts: pa.Table = field(default_factory=CHECK_COUNTS_SCHEMA.empty_table)
    lookup_rows: pa.Table = field(default_factory=LOOKUP_VERSIONS_SCHEMA.empty_table)
    topic_rows: Mapping[str, pa.Table] = field(default_factory=dict)
    """The rows for topics, by stage."""


class BatchSink(Protocol):
    """Where an engine writes the rows of a batch."""

    def write(self, rows: BatchRows, batch_time: BatchTime) -> dict[str, TableChange]:
        """Write the rows invisibly, and return the changes that make them visible."""

    def discard(self, changes: Mapping[str, TableChange]) -> None:
        """Remove what was written for a batch that failed before its commit."""

    def list_unsynced_files(self, changes: Mapping[str, TableChange]) -> Sequence[Path]:
        """Return local files that must be synced before the outcome: of these changes, and of earlier commits."""

    def recover(self, outcomes: Sequence[BatchOutcome]) -> None:
        """Compare the tables with the retained outcomes, oldest first, and commit what they lack.

        Raises TableAheadError if a table has a batch after the last outcome.
        """

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        """Commit a batch's changes, each once."""


def count_panes_by_timing(panes: Iterable[pa.Table]) -> dict[str, int]:
    """Count panes by timing, and retractions, over all stages."""
    counts: Counter[str] = Counter()
    for table in panes:
        for group in table.group_by(["timing", "kind"]).aggregate([([], "count_all")]).to_pylist():
            counts[group["timing"] if group["kind"] == "insert" else group["kind"]] += group["count_all"]
    return dict(counts)
