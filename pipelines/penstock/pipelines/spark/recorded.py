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

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.errors import ReplayError
from penstock.pipelines.plan.policies import TimePolicy
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.plan.windows import (
    Fixed,
    Sliding,
    SlidingOrder,
    Tumbling,
    Window,
    by_processing_time,
)
from penstock.pipelines.spark.stored.pieces import pieces
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table, is_table

_COLUMNS = ["batch_id", "batch_clock", "topic", "partition", "start", "end"]


class Recorded(msgspec.Struct):
    """One or several batches of a stream that may be run as one, at the moment of the last of them."""

    clock: int
    ranges: list[Range]


def cut_by_clock(plan: Plan) -> bool:
    """Whether what is in a window depends on when its records were read."""
    return any(by_processing_time(stage.window) or has_time_policy(stage.window) for stage in plan.firsts)


def has_time_policy(window: Window) -> bool:
    """Tell whether an order window goes by the batch clock, or a function sets timers of it."""
    match window:
        case Remembering(clock=clock):
            return clock
        case Tumbling(TimePolicy()) | SlidingOrder(evict=TimePolicy()) | SlidingOrder(show=TimePolicy()):
            return True
        case _:
            return False


def recorded(plan: Plan, ledger: Place, ranges: Sequence[Range], most: int | None) -> list[Recorded]:
    """What a stream has read of some ranges, in order; none of it holds many more records than `most`.

    What it has not read is not there. ReplayError where it began later than the ranges do: of what was before
    nobody knows when it came.
    """
    if not is_table(ledger):
        return []
    rows = delta_table(ledger).to_pyarrow_table(columns=_COLUMNS)
    found = [_within(one, ranges) for one in _together(plan, pa.table(rows))]
    batches = [one for one in found if one.ranges]
    _refuse_what_was_not_recorded(plan.name, batches, ranges)
    _name_every_partition(batches, ranges)
    if _one_by_one(plan):
        return batches
    return [Recorded(one.clock, list(piece)) for one in batches for piece in pieces(one.ranges, most)]


def _one_by_one(plan: Plan) -> bool:
    return any(has_time_policy(stage.window) for stage in plan.firsts)


def _together(plan: Plan, rows: pa.Table) -> list[Recorded]:
    """The batches of a ledger, those together that lie in the same windows."""
    clocks = pc.divide(rows.column("batch_clock").cast(pa.int64()), 1000)
    rows = rows.append_column("clock", clocks).append_column("cell", _cells(plan, clocks, rows))
    spans = rows.group_by(["cell", "topic", "partition"]).aggregate(
        [("start", "min"), ("end", "max"), ("clock", "max"), ("batch_id", "min")]
    )
    batches: dict[int, Recorded] = {}
    order = [(name, "ascending") for name in ("batch_id_min", "topic", "partition")]
    for row in spans.sort_by(order).to_pylist():
        one = batches.setdefault(row["cell"], Recorded(row["clock_max"], []))
        one.clock = max(one.clock, row["clock_max"])
        one.ranges.append(Range(row["topic"], row["partition"], row["start_min"], row["end_max"]))
    for one in batches.values():
        one.ranges.sort(key=lambda span: (span.topic, span.partition))
    return sorted(batches.values(), key=lambda one: one.clock)


def _cells(plan: Plan, clocks: pa.ChunkedArray, rows: pa.Table) -> pa.ChunkedArray:
    """A number for each batch; two have the same where no window begins or ends between them."""
    if _one_by_one(plan):
        return rows.column("batch_id")
    bounds = [bound for stage in plan.firsts for bound in _bounds(stage.window)]
    return reduce(pc.add, (pc.divide(pc.subtract(clocks, at), every) for every, at in bounds))


def _bounds(window: Window) -> list[tuple[int, int]]:
    """Where windows of the clock begin or end: every so often, and from when on."""
    match window:
        case Fixed(size=size, offset=offset, time="processing"):
            return [(size, offset)]
        case Sliding(size=size, period=period, offset=offset, time="processing"):
            return [(period, offset), (period, offset + size)]
        case _:
            return []


def _within(one: Recorded, ranges: Sequence[Range]) -> Recorded:
    """The part of a batch that lies in some ranges."""
    wanted = {span.name: span for span in ranges}
    cut = [
        replace(
            span, start=max(span.start, wanted[span.name].start), end=min(span.end, wanted[span.name].end)
        )
        for span in one.ranges
        if span.name in wanted
    ]
    return Recorded(one.clock, [span for span in cut if span.end > span.start])


def _name_every_partition(batches: Sequence[Recorded], ranges: Sequence[Range]) -> None:
    """Say of every batch where it stands in partitions that it read nothing of: a topic is read whole."""
    reached = {span.name: span.start for span in ranges}
    for one in batches:
        read = {span.name: span for span in one.ranges}
        one.ranges = [
            read.get(span.name, replace(span, start=reached[span.name], end=reached[span.name]))
            for span in ranges
        ]
        reached |= {span.name: span.end for span in one.ranges}


def _refuse_what_was_not_recorded(stream: str, batches: Sequence[Recorded], ranges: Sequence[Range]) -> None:
    first: dict[str, int] = {}
    for one in batches:
        for span in one.ranges:
            first.setdefault(span.name, span.start)
    for span in ranges:
        if first.get(span.name, span.start) > span.start:
            raise ReplayError(
                stream,
                f"its windows go by the clock, and its ledger does not say when {span.name} was read from offset "
                f"{span.start} to {first[span.name]}",
                f"Begin where it does: --from offset:{span.partition}={first[span.name]}",
            )
