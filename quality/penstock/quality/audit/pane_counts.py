"""Checks the number of rows of each kind in a pane table against the batches."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from penstock.engine.host.control import BatchRecord
from penstock.quality.audit.verdict import AuditDifference


def check_pane_counts(
    batches: Sequence[BatchRecord], panes: pa.Table, table: str
) -> Iterator[AuditDifference]:
    """Yield the batches whose row counts differ. `panes` needs batch_id, timing and kind."""
    stored_counts = count_panes(panes)
    first_batch = batches[0].batch_id if batches else 0
    recorded_counts = {batch.batch_id: dict(batch.panes) for batch in batches}
    for batch in sorted({*recorded_counts, *(number for number in stored_counts if number >= first_batch)}):
        recorded, stored = recorded_counts.get(batch, {}), stored_counts.get(batch, {})
        for kind in sorted({*recorded, *stored}):
            if recorded.get(kind, 0) != stored.get(kind, 0):
                yield AuditDifference(
                    f"{table}, batch {batch}",
                    f"the batch reports {recorded.get(kind, 0)} rows of kind {kind}; "
                    f"the table has {stored.get(kind, 0)}",
                )


def count_panes(panes: pa.Table) -> Mapping[int, Mapping[str, int]]:
    """Count the rows of each batch by timing, and by kind for kinds other than insert."""
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    grouped = panes.group_by(["batch_id", "timing", "kind"]).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        kind = row["timing"] if row["kind"] == "insert" else row["kind"]
        counts[row["batch_id"]][kind] += row["count_all"]
    return counts
