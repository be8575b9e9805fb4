"""What is checked of a table at a time: what became final since the last time, never what still moves."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from penstock.quality.expectations.suite import Cut

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Batch:
    """Rows that are checked together.

    For windows: those that end in (`after`, `upto`], milliseconds; for rows, those that batches of the stream in
    (`after`, `upto`] wrote; for a version, `upto` is its number. The next batch begins after `upto`.
    """

    cut: Cut
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
        placed = "batch_id" if self.cut == "rows" else "unix_millis(window_end)"
        before = f"{placed} <= {self.upto}L"
        return before if self.after is None else f"{before} AND {placed} > {self.after}L"

    @property
    def earlier(self) -> str | None:
        """The SQL that is true for the rows of the batches before it; None where there are none."""
        return None if self.after is None else replace(self, upto=self.after, after=None).condition


def due(
    cut: Cut, final: int | None, version: int, last: int | None, written: int | None = None
) -> Iterator[Batch]:
    """Yield the batches that are to be checked after `last`, which is the `upto` of the last one that was.

    `final` is the time by which windows that end are over for good: the watermark less the lateness. `written` is
    the last batch of the stream that is in the table.
    """
    if cut == "version":
        if last is None or version > last:
            yield Batch("version", version)
    elif cut == "rows":
        if written is not None and (last is None or written > last):
            yield Batch("rows", written, last)
    elif final is not None:
        yield from _by_day(final, last) if cut == "day" else _at_once(final, last)


def _at_once(final: int, last: int | None) -> Iterator[Batch]:
    if last is None or final > last:
        yield Batch("final", final, last)


def _by_day(final: int, last: int | None) -> Iterator[Batch]:
    """Whole days of UTC; before the first, everything up to its end."""
    ended = final - final % DAY_MS
    if last is None:
        yield Batch("day", ended)
        return
    for upto in range(last + DAY_MS, ended + 1, DAY_MS):
        yield Batch("day", upto, upto - DAY_MS)
