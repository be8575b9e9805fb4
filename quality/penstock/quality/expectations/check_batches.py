"""Divides a table into batches to check: rows that became final since the last check.

Rows that may still change are never checked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from penstock.quality.expectations.suite import BatchCut

DAY_MS = 86_400_000


@dataclass(frozen=True)
class CheckedBatch:
    """Rows that are checked together.

    For windows: those that end in (`after`, `upto`], in milliseconds. For `rows`: those that the batches in
    (`after`, `upto`] of the stream wrote. For a version: `upto` is its number. The next batch starts after
    `upto`.
    """

    cut: BatchCut
    upto: int
    after: int | None = None

    @property
    def label(self) -> str:
        """The name of the batch in files and reports. Labels sort in the order of batches."""
        if self.cut in ("version", "rows"):
            return f"{self.cut}-{self.upto:012d}"
        end = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self.upto)
        return f"{self.cut}-{end.strftime('%Y%m%dT%H%M%S')}.{self.upto % 1000:03d}Z"

    @property
    def condition(self) -> str | None:
        """SQL that selects the rows of the batch; None for all rows of a table version."""
        if self.cut == "version":
            return None
        position_sql = "batch_id" if self.cut == "rows" else "unix_millis(window_end)"
        upper_bound = f"{position_sql} <= {self.upto}L"
        return upper_bound if self.after is None else f"{upper_bound} AND {position_sql} > {self.after}L"

    @property
    def earlier(self) -> str | None:
        """SQL that selects the rows of all earlier batches; None if there are none."""
        return None if self.after is None else replace(self, upto=self.after, after=None).condition


def select_due_batches(
    cut: BatchCut, final_ms: int | None, version: int, last_upto: int | None, written_batch: int | None = None
) -> Iterator[CheckedBatch]:
    """Yield the batches to check after `last_upto`, the `upto` of the last checked batch.

    `final_ms` is the time up to which windows are final: the watermark minus the allowed lateness.
    `written_batch` is the last batch of the stream in the table.
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
    """Yield whole days in UTC. The first batch contains everything before its end."""
    last_day_end = final_ms - final_ms % DAY_MS
    if last_upto is None:
        yield CheckedBatch("day", last_day_end)
        return
    for upto in range(last_upto + DAY_MS, last_day_end + 1, DAY_MS):
        yield CheckedBatch("day", upto, upto - DAY_MS)
