"""Checks that a stream ledger is contiguous and that its counts add up."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.ledger_rows import group_by_partition


def check_continuity(ledger: pa.Table) -> Iterator[AuditDifference]:
    """Yield gaps and overlaps in the offset ranges of each partition.

    A partition may start after offset 0: earlier records had expired, or the stream was configured to start
    there.
    """
    for (topic, partition), rows in group_by_partition(ledger):
        start, end, batch = (_to_numpy(rows, name) for name in ("start", "end", "batch_id"))
        for index in np.flatnonzero(end < start):
            yield AuditDifference(
                f"{topic}/{partition}, batch {batch[index]}", f"ends at {end[index]}, before its start"
            )
        for index in np.flatnonzero(start[1:] != end[:-1]):
            batch_before, batch_after = batch[index], batch[index + 1]
            yield AuditDifference(
                f"{topic}/{partition} offset {min(end[index], start[index + 1])}",
                _describe_break(int(end[index]), int(start[index + 1]), int(batch_before), int(batch_after)),
            )


def check_sums(ledger: pa.Table) -> Iterator[AuditDifference]:
    """Yield rows whose counts do not add up, exceed their offsets, or are negative."""
    read_counts = ledger.column("read")
    fates = [ledger.column(name) for name in RECORD_FATES]
    fate_total = fates[0]
    for column in fates[1:]:
        fate_total = pc.add(fate_total, column)
    offset_counts = pc.subtract(ledger.column("end"), ledger.column("start"))
    is_wrong = pc.or_(pc.not_equal(read_counts, fate_total), pc.greater(read_counts, offset_counts))
    for column in (read_counts, *fates):
        is_wrong = pc.or_(is_wrong, pc.less(column, 0))
    for row in ledger.filter(is_wrong).sort_by("batch_id").to_pylist():
        fates_text = " + ".join(f"{row[name]} {name}" for name in RECORD_FATES)
        yield AuditDifference(
            f"{row['topic']}/{row['partition']}, batch {row['batch_id']}",
            f"{row['read']} records read of offsets {row['start']} to {row['end'] - 1}, but {fates_text}",
        )


def _describe_break(end: int, start: int, batch_before: int, batch_after: int) -> str:
    if batch_before == batch_after:
        return f"the ledger has batch {batch_before} more than once"
    if start > end:
        return (
            f"no batch read offsets {end} to {start - 1}: "
            f"batch {batch_before} ends before, batch {batch_after} starts after"
        )
    return f"batches {batch_before} and {batch_after} both read offsets {start} to {end - 1}"


def _to_numpy(rows: pa.Table, name: str) -> np.ndarray:
    return np.asarray(rows.column(name))
