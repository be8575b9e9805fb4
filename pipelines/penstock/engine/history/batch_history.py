"""The batches of a stream as they were: which records, and at what moment. Its ledger tells.

Windows that the clock cut follow from nothing else. What happened within one window of fixed size may be run as one
batch; an order window that goes by the clock, or a function with timers of it, takes each batch as it was.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.errors import ReplayError
from penstock.engine.plan.policies import TimePolicy
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.windows import Fixed, Sliding, SlidingOrder, Tumbling, Window, is_processing_time
from penstock.engine.spark.bounded_sources.range_slicing import slice_ranges
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table

_LEDGER_COLUMNS = ["batch_id", "batch_clock", "topic", "partition", "start", "end"]


class HistoryBatch(msgspec.Struct):
    """One or several batches of a stream that may be run as one, at the moment of the last of them."""

    clock: int
    ranges: list[OffsetRange]


def is_cut_by_clock(plan: Plan) -> bool:
    """Whether what is in a window depends on when its records were read."""
    return any(
        is_processing_time(stage.window) or has_time_policy(stage.window) for stage in plan.source_stages
    )


def has_time_policy(window: Window) -> bool:
    """Tell whether an order window goes by the batch clock, or a function sets timers of it."""
    match window:
        case StatefulFunction(clock=clock):
            return clock
        case Tumbling(TimePolicy()) | SlidingOrder(evict=TimePolicy()) | SlidingOrder(trigger=TimePolicy()):
            return True
        case _:
            return False


def load_batch_history(
    plan: Plan, ledger: StoragePath, ranges: Sequence[OffsetRange], max_records: int | None
) -> list[HistoryBatch]:
    """What a stream has read of some ranges, in order; none of it holds many more records than `most`.

    What it has not read is not there. ReplayError where it began later than the ranges do: of what was before
    nobody knows when it came.
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
    return any(has_time_policy(stage.window) for stage in plan.source_stages)


def _merge_batches_by_window(plan: Plan, rows: pa.Table) -> list[HistoryBatch]:
    """The batches of a ledger, those together that lie in the same windows."""
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
    """A number for each batch; two have the same where no window begins or ends between them."""
    if _keeps_batches_separate(plan):
        return rows.column("batch_id")
    bounds = [bound for stage in plan.source_stages for bound in _clock_boundaries(stage.window)]
    return reduce(
        pc.add, (pc.divide(pc.subtract(clocks, origin_ms), period_ms) for period_ms, origin_ms in bounds)
    )


def _clock_boundaries(window: Window) -> list[tuple[int, int]]:
    """Where windows of the clock begin or end: every so often, and from when on."""
    match window:
        case Fixed(size=size, offset=offset, time="processing"):
            return [(size, offset)]
        case Sliding(size=size, period=period, offset=offset, time="processing"):
            return [(period, offset), (period, offset + size)]
        case _:
            return []


def _clip_to_ranges(batch: HistoryBatch, ranges: Sequence[OffsetRange]) -> HistoryBatch:
    """The part of a batch that lies in some ranges."""
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
    """Say of every batch where it stands in partitions that it read nothing of: a topic is read whole."""
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
                f"its windows go by the clock, and its ledger does not say when {span.name} was read from offset "
                f"{span.start} to {first_recorded[span.name]}",
                f"Begin where it does: --from offset:{span.partition}={first_recorded[span.name]}",
            )
