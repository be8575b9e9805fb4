"""What is checked of a table at a time: what became final since the last time, never what still moves."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from penstock.quality.expectations.suite import BatchCut

DAY_MS = 86_400_000


@dataclass(frozen=True)
class CheckedBatch:
    """Rows that are checked together.

    For windows: those that end in (`after`, `upto`], milliseconds; for rows, those that batches of the stream in
    (`after`, `upto`] wrote; for a version, `upto` is its number. The next batch begins after `upto`.
    """

    cut: BatchCut
    upto: int
    after: int | None = None

    @property
    def label(self) -> str:
        """What the batch is called, in files and for people; the order of labels is the order of batches."""
        if self.cut in ("version", "rows"):
            return f"{self.cut}-{self.upto:012d}"
        end = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self.upto)
        return f"{self.cut}-{end.strftime('%Y%m%dT%H%M%S')}.{self.upto % 1000:03d}Z"

    @property
    def condition(self) -> str | None:
        """The SQL that is true for its rows; None where all rows of the table as it is are meant."""
        if self.cut == "version":
            return None
        position_sql = "batch_id" if self.cut == "rows" else "unix_millis(window_end)"
        upper_bound = f"{position_sql} <= {self.upto}L"
        return upper_bound if self.after is None else f"{upper_bound} AND {position_sql} > {self.after}L"

    @property
    def earlier(self) -> str | None:
        """The SQL that is true for the rows of the batches before it; None where there are none."""
        return None if self.after is None else replace(self, upto=self.after, after=None).condition


def select_due_batches(
    cut: BatchCut, final_ms: int | None, version: int, last_upto: int | None, written_batch: int | None = None
) -> Iterator[CheckedBatch]:
    """Yield the batches that are to be checked after `last`, which is the `upto` of the last one that was.

    `final` is the time by which windows that end are over for good: the watermark less the lateness. `written` is
    the last batch of the stream that is in the table.
    """
    if cut == "version":
        if last_upto is None or version > last_upto:
            yield CheckedBatch("version", version)
    elif cut == "rows":
        if written_batch is not None and (last_upto is None or written_batch > last_upto):
            yield CheckedBatch("rows", written_batch, last_upto)
    elif final_ms is not None:
        yield from _daily_batches(final_ms, last_upto) if cut == "day" else _final_batch(final_ms, last_upto)


def _final_batch(final_ms: int, last_upto: int | None) -> Iterator[CheckedBatch]:
    if last_upto is None or final_ms > last_upto:
        yield CheckedBatch("final", final_ms, last_upto)


def _daily_batches(final_ms: int, last_upto: int | None) -> Iterator[CheckedBatch]:
    """Whole days of UTC; before the first, everything up to its end."""
    last_day_end = final_ms - final_ms % DAY_MS
    if last_upto is None:
        yield CheckedBatch("day", last_day_end)
        return
    for upto in range(last_upto + DAY_MS, last_day_end + 1, DAY_MS):
        yield CheckedBatch("day", upto, upto - DAY_MS)
