"""Whether the ledger of a stream is a chain: its ranges follow one another, and each adds up."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.quality.audit.verdict import Difference

FATES = ("folded", "late", "quarantined", "duplicate", "filtered")
"""What becomes of a record: exactly one of these."""

Partition = tuple[str, int]


def chain(ledger: pa.Table) -> Iterator[Difference]:
    """Yield where the ranges of a partition leave offsets out or take them twice, partition by partition.

    A partition may begin after 0: what was before had expired, or the stream was told to begin there.
    """
    for (topic, partition), rows in by_partition(ledger):
        start, end, batch = (_numbers(rows, name) for name in ("start", "end", "batch_id"))
        for at in np.flatnonzero(end < start):
            yield Difference(
                f"{topic}/{partition}, batch {batch[at]}", f"ends at {end[at]}, before its begin"
            )
        for at in np.flatnonzero(start[1:] != end[:-1]):
            before, after = batch[at], batch[at + 1]
            yield Difference(
                f"{topic}/{partition} offset {min(end[at], start[at + 1])}",
                _broken(int(end[at]), int(start[at + 1]), int(before), int(after)),
            )


def sums(ledger: pa.Table) -> Iterator[Difference]:
    """Yield the rows whose records are not all in exactly one account, and those that count below nought."""
    told = ledger.column("read")
    fates = [ledger.column(name) for name in FATES]
    counted = fates[0]
    for column in fates[1:]:
        counted = pc.add(counted, column)
    offsets = pc.subtract(ledger.column("end"), ledger.column("start"))
    wrong = pc.or_(pc.not_equal(told, counted), pc.greater(told, offsets))
    for column in (told, *fates):
        wrong = pc.or_(wrong, pc.less(column, 0))
    for row in ledger.filter(wrong).sort_by("batch_id").to_pylist():
        parts = " + ".join(f"{row[name]} {name}" for name in FATES)
        yield Difference(
            f"{row['topic']}/{row['partition']}, batch {row['batch_id']}",
            f"{row['read']} records read of offsets {row['start']} to {row['end'] - 1}, and {parts}",
        )


def by_partition(rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
    """Yield the rows of each partition, in the order of their batches."""
    named = rows.group_by(["topic", "partition"]).aggregate([]).sort_by(ORDER[:2]).to_pylist()
    ordered = rows.sort_by(ORDER)
    for each in named:
        same_topic = pc.equal(ordered.column("topic"), each["topic"])
        same = pc.and_(same_topic, pc.equal(ordered.column("partition"), each["partition"]))
        yield (each["topic"], each["partition"]), ordered.filter(same)


ORDER = [
    ("topic", "ascending"),
    ("partition", "ascending"),
    ("batch_id", "ascending"),
    ("start", "ascending"),
]


def _broken(end: int, start: int, before: int, after: int) -> str:
    if before == after:
        return f"batch {before} is in the ledger more than once"
    if start > end:
        return (
            f"offsets {end} to {start - 1} were read by no batch: {before} ends before, {after} begins after"
        )
    return f"offsets {start} to {end - 1} were read by batch {before}, and again by {after}"


def _numbers(rows: pa.Table, name: str) -> np.ndarray:
    return np.asarray(rows.column(name))
