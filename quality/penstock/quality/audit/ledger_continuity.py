"""Whether the ledger of a stream is a chain: its ranges follow one another, and each adds up."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.quality.audit.verdict import AuditDifference

FATES = ("folded", "late", "quarantined", "duplicate", "filtered")
"""What becomes of a record: exactly one of these."""

TopicPartition = tuple[str, int]


def check_continuity(ledger: pa.Table) -> Iterator[AuditDifference]:
    """Yield where the ranges of a partition leave offsets out or take them twice, partition by partition.

    A partition may begin after 0: what was before had expired, or the stream was told to begin there.
    """
    for (topic, partition), rows in group_by_partition(ledger):
        start, end, batch = (_to_numpy(rows, name) for name in ("start", "end", "batch_id"))
        for index in np.flatnonzero(end < start):
            yield AuditDifference(
                f"{topic}/{partition}, batch {batch[index]}", f"ends at {end[index]}, before its begin"
            )
        for index in np.flatnonzero(start[1:] != end[:-1]):
            batch_before, batch_after = batch[index], batch[index + 1]
            yield AuditDifference(
                f"{topic}/{partition} offset {min(end[index], start[index + 1])}",
                _describe_break(int(end[index]), int(start[index + 1]), int(batch_before), int(batch_after)),
            )


def check_sums(ledger: pa.Table) -> Iterator[AuditDifference]:
    """Yield the rows whose records are not all in exactly one account, and those that count below nought."""
    read_counts = ledger.column("read")
    fates = [ledger.column(name) for name in FATES]
    fate_total = fates[0]
    for column in fates[1:]:
        fate_total = pc.add(fate_total, column)
    offset_counts = pc.subtract(ledger.column("end"), ledger.column("start"))
    is_wrong = pc.or_(pc.not_equal(read_counts, fate_total), pc.greater(read_counts, offset_counts))
    for column in (read_counts, *fates):
        is_wrong = pc.or_(is_wrong, pc.less(column, 0))
    for row in ledger.filter(is_wrong).sort_by("batch_id").to_pylist():
        fates_text = " + ".join(f"{row[name]} {name}" for name in FATES)
        yield AuditDifference(
            f"{row['topic']}/{row['partition']}, batch {row['batch_id']}",
            f"{row['read']} records read of offsets {row['start']} to {row['end'] - 1}, and {fates_text}",
        )


def group_by_partition(rows: pa.Table) -> Iterator[tuple[TopicPartition, pa.Table]]:
    """Yield the rows of each partition, in the order of their batches."""
    partition_rows = rows.group_by(["topic", "partition"]).aggregate([]).sort_by(LEDGER_ORDER[:2]).to_pylist()
    ordered = rows.sort_by(LEDGER_ORDER)
    for partition_row in partition_rows:
        is_same_topic = pc.equal(ordered.column("topic"), partition_row["topic"])
        is_same_partition = pc.and_(
            is_same_topic, pc.equal(ordered.column("partition"), partition_row["partition"])
        )
        yield (partition_row["topic"], partition_row["partition"]), ordered.filter(is_same_partition)


LEDGER_ORDER = [
    ("topic", "ascending"),
    ("partition", "ascending"),
    ("batch_id", "ascending"),
    ("start", "ascending"),
]


def _describe_break(end: int, start: int, batch_before: int, batch_after: int) -> str:
    if batch_before == batch_after:
        return f"batch {batch_before} is in the ledger more than once"
    if start > end:
        return (
            f"offsets {end} to {start - 1} were read by no batch: "
            f"{batch_before} ends before, {batch_after} begins after"
        )
    return f"offsets {start} to {end - 1} were read by batch {batch_before}, and again by {batch_after}"


def _to_numpy(rows: pa.Table, name: str) -> np.ndarray:
    return np.asarray(rows.column(name))
