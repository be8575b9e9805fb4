"""Reads the past batches of a stream from its ledger: their offset ranges and batch clocks.

The content of processing-time windows follows only from these. Batches within the same fixed windows may run as
one batch. Order windows by processing time, and functions with processing-time timers, need each batch as it was.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.errors import ReplayError
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources.range_slicing import slice_ranges
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table

_LEDGER_COLUMNS = ["batch_id", "batch_clock", "topic", "partition", "start", "end"]


class HistoryBatch(msgspec.Struct):
    """One or several batches of a stream that may run as one, with the clock of the last of them."""

    clock: int
    ranges: list[OffsetRange]


def is_cut_by_clock(plan: Plan) -> bool:
    """Whether the content of any window depends on when its records were read."""
    windows = [stage.window for stage in plan.source_stages]
    return any(window.uses_processing_time or window.is_batch_dependent for window in windows)


def load_batch_history(
    plan: Plan, ledger: StoragePath, ranges: Sequence[OffsetRange], max_records: int | None
) -> list[HistoryBatch]:
    """Return the batches in which a stream read these ranges, in order, sliced to about `max_records` records.

    Offsets that the stream has not read are missing. Raises ReplayError when the ledger starts after the ranges:
    the clock of the earlier records is unknown.
    """
    if not is_delta_table(ledger):
        return []
    rows = open_delta_table(ledger).to_pyarrow_table(columns=_LEDGER_COLUMNS)
    clipped_batches = [
        _clip_to_ranges(batch, ranges) for batch in _merge_batches_by_window(plan, pa.table(rows))
    ]
    batches = [batch for batch in clipped_batches if batch.ranges]
    _refuse_unrecorded_ranges(plan.name, batches, ranges)
    _fill_missing_partitions(batches, ranges)
    if _keeps_batches_separate(plan):
        return batches
    return [
        HistoryBatch(batch.clock, list(range_slice))
        for batch in batches
        for range_slice in slice_ranges(batch.ranges, max_records)
    ]


def _keeps_batches_separate(plan: Plan) -> bool:
    return any(stage.window.is_batch_dependent for stage in plan.source_stages)


def _merge_batches_by_window(plan: Plan, rows: pa.Table) -> list[HistoryBatch]:
    """Return the batches of a ledger; batches in the same windows are merged."""
    clocks = pc.divide(rows.column("batch_clock").cast(pa.int64()), 1000)
    rows = rows.append_column("clock", clocks).append_column("cell", _window_cells(plan, clocks, rows))
    spans = rows.group_by(["cell", "topic", "partition"]).aggregate(
        [("start", "min"), ("end", "max"), ("clock", "max"), ("batch_id", "min")]
    )
    batches: dict[int, HistoryBatch] = {}
    order = [(name, "ascending") for name in ("batch_id_min", "topic", "partition")]
    for row in spans.sort_by(order).to_pylist():
        batch = batches.setdefault(row["cell"], HistoryBatch(row["clock_max"], []))
        batch.clock = max(batch.clock, row["clock_max"])
        batch.ranges.append(OffsetRange(row["topic"], row["partition"], row["start_min"], row["end_max"]))
    for batch in batches.values():
        batch.ranges.sort(key=lambda span: (span.topic, span.partition))
    return sorted(batches.values(), key=lambda batch: batch.clock)


def _window_cells(plan: Plan, clocks: pa.ChunkedArray, rows: pa.Table) -> pa.ChunkedArray:
    """Return a number for each batch; two batches share it if no window starts or ends between them."""
    if _keeps_batches_separate(plan):
        return rows.column("batch_id")
    bounds = [bound for stage in plan.source_stages for bound in stage.window.clock_boundaries or ()]
    return reduce(
        pc.add, (pc.divide(pc.subtract(clocks, origin_ms), period_ms) for period_ms, origin_ms in bounds)
    )


def _clip_to_ranges(batch: HistoryBatch, ranges: Sequence[OffsetRange]) -> HistoryBatch:
    """Return the part of a batch that lies in these ranges."""
    ranges_by_name = {span.name: span for span in ranges}
    clipped = [
        replace(
            span,
            start=max(span.start, ranges_by_name[span.name].start),
            end=min(span.end, ranges_by_name[span.name].end),
        )
        for span in batch.ranges
        if span.name in ranges_by_name
    ]
    return HistoryBatch(batch.clock, [span for span in clipped if span.end > span.start])


def _fill_missing_partitions(batches: Sequence[HistoryBatch], ranges: Sequence[OffsetRange]) -> None:
    """Add an empty range to each batch for each partition that it did not read, at the current position."""
    positions = {span.name: span.start for span in ranges}
    for batch in batches:
        read_ranges = {span.name: span for span in batch.ranges}
        batch.ranges = [
            read_ranges.get(span.name, replace(span, start=positions[span.name], end=positions[span.name]))
            for span in ranges
        ]
        positions |= {span.name: span.end for span in batch.ranges}


def _refuse_unrecorded_ranges(
    stream: str, batches: Sequence[HistoryBatch], ranges: Sequence[OffsetRange]
) -> None:
    first_recorded: dict[str, int] = {}
    for batch in batches:
        for span in batch.ranges:
            first_recorded.setdefault(span.name, span.start)
    for span in ranges:
        if first_recorded.get(span.name, span.start) > span.start:
            raise ReplayError(
                stream,
                f"its windows use processing time, but its ledger does not record when {span.name} was read from "
                f"offset {span.start} to {first_recorded[span.name]}",
                f"Start at the first recorded offset: --from offset:{span.partition}={first_recorded[span.name]}",
            )
