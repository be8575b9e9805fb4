"""Compares the counts of a stream ledger with those of a recomputation."""

from collections.abc import Iterator

import pyarrow as pa

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.engine.storage import StoragePath
from penstock.quality.audit.recomputation import Recomputation
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.table_reads import read_rows

BEYOND_LAST_BATCH = 1 << 40
"""A batch number above that of any recomputation."""


def compare_fates(
    scope: AuditScope, recomputed_warehouse: StoragePath, recomputation: Recomputation
) -> Iterator[AuditDifference]:
    """Yield the partitions whose records have other fates in the recomputation."""
    ledger = read_rows(recomputed_warehouse / scope.ledger_table, BEYOND_LAST_BATCH)
    assert ledger is not None
    ledger_counts, recomputed_counts = _sum_fates(scope.ledger), _sum_fates(ledger)
    late_counts, rejected_counts = (
        _count_addresses(recomputation.late_addresses),
        _count_addresses(recomputation.rejected_addresses),
    )
    for partition, counted in sorted(ledger_counts.items()):
        recounted = recomputed_counts.get(partition, dict.fromkeys(RECORD_FATES, 0))
        expected = {
            "accepted": recounted["accepted"],
            "quarantined": recounted["quarantined"] + rejected_counts.get(partition, 0),
            "duplicate": recounted["duplicate"],
            "filtered": recounted["filtered"] - late_counts.get(partition, 0),
        }
        for fate, count in expected.items():
            if counted[fate] != count:
                yield AuditDifference(
                    f"{partition[0]}/{partition[1]}",
                    f"the ledger counts {counted[fate]} {fate}; recomputed, there are {count}",
                )


def _sum_fates(ledger: pa.Table) -> dict[tuple[str, int], dict[str, int]]:
    sums = ledger.group_by(["topic", "partition"]).aggregate([(fate, "sum") for fate in RECORD_FATES])
    return {
        (row["topic"], row["partition"]): {fate: row[f"{fate}_sum"] for fate in RECORD_FATES}
        for row in sums.to_pylist()
    }


def _count_addresses(addresses: pa.Table) -> dict[tuple[str, int], int]:
    counted = addresses.group_by(["topic", "partition"]).aggregate([("offset", "count")])
    return {(row["topic"], row["partition"]): row["offset_count"] for row in counted.to_pylist()}
