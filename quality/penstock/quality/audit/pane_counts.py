"""Whether a table of panes holds as many rows of each kind as each batch says that it wrote."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from penstock.pipelines.host.control import BatchRecord
from penstock.quality.audit.verdict import Difference


def pane_counts(batches: Sequence[BatchRecord], panes: pa.Table, table: str) -> Iterator[Difference]:
    """Yield the batches whose rows are not all in the table, each once; `panes` needs batch, timing and kind."""
    found = counted(panes)
    first = batches[0].batch_id if batches else 0
    told = {batch.batch_id: dict(batch.panes) for batch in batches}
    for batch in sorted({*told, *(number for number in found if number >= first)}):
        wrote, there = told.get(batch, {}), found.get(batch, {})
        for kind in sorted({*wrote, *there}):
            if wrote.get(kind, 0) != there.get(kind, 0):
                yield Difference(
                    f"{table}, batch {batch}",
                    f"it wrote {wrote.get(kind, 0)} rows of kind {kind}, and the table has {there.get(kind, 0)}",
                )


def counted(panes: pa.Table) -> Mapping[int, Mapping[str, int]]:
    """Return how many rows of each timing, and of each kind that is no insert, every batch has."""
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    grouped = panes.group_by(["batch_id", "timing", "kind"]).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        kind = row["timing"] if row["kind"] == "insert" else row["kind"]
        counts[row["batch_id"]][kind] += row["count_all"]
    return counts
