"""Summaries of a stream's batches by intervals of wall-clock time, for plots.

Intervals start at multiples of their length, and only an interval that is over is summarized. So each report covers
the same time, and sums of different reports can be compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from sqlalchemy import select

from penstock.platform.control.batch_rates import BatchRates, compute_rates, read_batch_durations
from penstock.platform.control.reports import BatchSummary, summarize_batches
from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import batches

REPORT_GRACE_MS = 2_000
"""How long after its end an interval is taken to be complete: hosts report batches after their commit."""


@dataclass(frozen=True)
class ReportIntervals:
    """Intervals of one length. `now_ms` decides which are over."""

    length_ms: int
    now_ms: int

    def find_end(self, at_ms: int) -> int:
        """Return the end of the interval that contains a time."""
        return (at_ms // self.length_ms + 1) * self.length_ms

    def is_over(self, end_ms: int) -> bool:
        """Whether an interval is over. One that starts in the future is from before a clock was set back."""
        return end_ms + REPORT_GRACE_MS <= self.now_ms or end_ms - self.length_ms > self.now_ms

    def has_ended_since(self, at_ms: int) -> bool:
        """Whether an interval has ended since a time."""
        return self.is_over(self.find_end(at_ms - REPORT_GRACE_MS))


@dataclass(frozen=True)
class IntervalReport:
    """The batches that a stream committed in one interval, and their rates."""

    summary: BatchSummary
    rates: BatchRates


def report_intervals(
    store: ControlStore, stream: str, after_batch: int, intervals: ReportIntervals, max_reports: int
) -> Iterator[IntervalReport]:
    """Yield a report of each interval with batches after a batch that is over, oldest first.

    After a long time without reports the intervals are longer, so that there are about `max_reports` at most.
    """
    if (bounds := _read_commit_bounds(store, stream, after_batch)) is None:
        return
    first_ms, last_ms = bounds
    length_ms = max(intervals.length_ms, ceil((last_ms - first_ms) / max_reports))
    longer_intervals = ReportIntervals(length_ms, intervals.now_ms)
    while bounds is not None:
        end_ms = longer_intervals.find_end(bounds[0])
        if not longer_intervals.is_over(end_ms):
            return
        end_batch = _find_first_batch_since(store, stream, after_batch, end_ms)
        summary = summarize_batches(store, stream, after_batch, end_batch)
        if summary is None:
            return
        yield IntervalReport(summary, _read_rates(store, summary, length_ms))
        after_batch = summary.last
        bounds = None if end_batch is None else _read_commit_bounds(store, stream, after_batch)


def _read_rates(store: ControlStore, summary: BatchSummary, length_ms: int) -> BatchRates:
    durations_ms = read_batch_durations(store, summary.stream, summary.first, summary.last)
    return compute_rates(length_ms, summary.read, summary.late, summary.quarantined, durations_ms)


def _read_commit_bounds(store: ControlStore, stream: str, after_batch: int) -> tuple[int, int] | None:
    """Return when the first and the last batch after a batch were committed; None if there is none."""
    commit_times = select(batches.c.committed_at_ms).where(
        batches.c.stream == stream, batches.c.batch_id > after_batch
    )
    first_and_last = [
        commit_times.order_by(order).limit(1).scalar_subquery()
        for order in (batches.c.batch_id, batches.c.batch_id.desc())
    ]
    with store.engine.connect() as connection:
        first_ms, last_ms = connection.execute(select(*first_and_last)).one()
    return None if first_ms is None else (first_ms, last_ms)


def _find_first_batch_since(store: ControlStore, stream: str, after_batch: int, since_ms: int) -> int | None:
    """Return the first batch after a batch that was committed at a time or later; None if there is none."""
    later_batches = select(batches.c.batch_id).where(
        batches.c.stream == stream, batches.c.batch_id > after_batch, batches.c.committed_at_ms >= since_ms
    )
    with store.engine.connect() as connection:
        batch_id: int | None = connection.execute(
            later_batches.order_by(batches.c.batch_id).limit(1)
        ).scalar()
        return batch_id
