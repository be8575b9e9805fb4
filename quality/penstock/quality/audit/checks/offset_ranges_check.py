"""Checks that the batches of a stream read contiguous offset ranges."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.ledger_coverage import list_offset_ranges
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.stage_differences import find_in_source_stages
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences
from penstock.quality.ledger_rows import group_by_partition


@stream_check("offset ranges", order=20)
def check_offset_ranges(scope: AuditScope) -> CheckOutcome:
    """The offset ranges of each partition are contiguous."""
    bounds_text = ", ".join(
        f"{covered.topic}/{covered.partition} from {covered.start} to {covered.end}"
        for covered in list_offset_ranges(scope.ledger)
    )
    differences = find_in_source_stages(scope, lambda stage: check_continuity(scope.stage_ledger(stage)))
    return judge_differences(differences, f"no gap or overlap: {bounds_text}")


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
