"""The figures of a stream as text: a row of the table of `penstock status`, and a page of one stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.platform.cli.output import format_age
from penstock.platform.cli.text_table import TableColumn

if TYPE_CHECKING:
    from penstock.platform.control.batch_rates import BatchRates
    from penstock.platform.control.reports import StreamOverview
    from penstock.platform.stack.stack_view import StackView

NO_FIGURE = "-"

STREAM_COLUMNS = (
    TableColumn("stream"),
    TableColumn("state"),
    TableColumn("rec/s", is_number=True),
    TableColumn("p50 ms", is_number=True, rank=2),
    TableColumn("p99 ms", is_number=True, rank=1),
    TableColumn("late", is_number=True),
    TableColumn("invalid", is_number=True),
    TableColumn("lag", is_number=True),
    TableColumn("delay", is_number=True),
    TableColumn("committed", is_number=True, rank=3),
    TableColumn("batch", is_number=True, rank=4),
)
LEGEND = (
    "Figures of the last minute. p50, p99: time of a batch. late, invalid: share of the records read. "
    "lag: records not read yet. delay: how far the watermark is behind the clock."
)


@dataclass(frozen=True)
class StreamFigures:
    """A stream with its state in a word, and its rates of the last minute; None if it has committed nothing."""

    stream: "StreamOverview"
    state: str
    rates: "BatchRates | None"
    at_ms: int

    @classmethod
    def of_view(cls, view: "StackView", stream: "StreamOverview") -> "StreamFigures":
        """Return the figures of a stream of a stack."""
        from penstock.platform.stack.stream_condition import describe_state

        return cls(stream, describe_state(view, stream), view.rates.get(stream.stream), view.at_ms)

    @property
    def watermark_delay_ms(self) -> int | None:
        """How far the watermark is behind the clock, negative if it is ahead; None without a watermark."""
        last_batch = self.stream.last
        return (
            None
            if last_batch is None or last_batch.watermark_ms is None
            else self.at_ms - last_batch.watermark_ms
        )

    def as_row(self) -> list[str]:
        """Return the cells of the stream in the table of all streams."""
        last_batch, rates = self.stream.last, self.rates
        return [
            self.stream.stream,
            self.state,
            NO_FIGURE if rates is None else format_rate(rates.records_per_second),
            format_milliseconds(rates.batch_ms_p50 if rates else None),
            format_milliseconds(rates.batch_ms_p99 if rates else None),
            format_share(rates.late_share if rates else None),
            format_share(rates.invalid_share if rates else None),
            NO_FIGURE if last_batch is None else f"{self.stream.lag_records:,}",
            format_delay(self.watermark_delay_ms),
            NO_FIGURE if last_batch is None else f"{format_age(last_batch.commit_time_ms, self.at_ms)} ago",
            NO_FIGURE if last_batch is None else str(last_batch.batch_id),
        ]

    def describe(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each figure, for a page of this stream."""
        stream, last_batch, rates = self.stream, self.stream.last, self.rates
        yield "state", self.state
        yield "desired state", str(stream.desired.desired) if stream.desired else "none"
        if stream.lease is not None and stream.lease.expires_at_ms > self.at_ms:
            yield "host", f"{stream.lease.holder} (epoch {stream.lease.epoch})"
        if rates is not None:
            interval = f"in the last {rates.interval_ms / 1000:.0f} s"
            read = f"{rates.records_read:,} records {interval}"
            yield "records per second", f"{format_rate(rates.records_per_second)} ({read})"
            p50, p99 = format_milliseconds(rates.batch_ms_p50), format_milliseconds(rates.batch_ms_p99)
            yield (
                "batch time",
                f"p50 {p50} ms, p99 {p99} ms ({rates.batches:,} batches with records {interval})",
            )
            yield "late records", f"{format_share(rates.late_share)} of those read {interval}"
            yield "invalid records", f"{format_share(rates.invalid_share)} of those read {interval}"
        if last_batch is None:
            yield "last batch", "none"
            return
        yield "consumer lag", f"{stream.lag_records:,} records not read yet"
        yield "watermark", _describe_watermark(last_batch.watermark_ms, self.watermark_delay_ms)
        committed_at_ms = last_batch.commit_time_ms
        age = format_age(committed_at_ms, self.at_ms)
        yield "last batch", f"{last_batch.batch_id}, committed {age} ago, at {format_time(committed_at_ms)}"
        yield "rows of state", f"{last_batch.state_rows:,}"


def format_rate(per_second: float) -> str:
    """Format a rate with one decimal below one hundred."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.1f}"


def format_milliseconds(milliseconds: float | None) -> str:
    """Format the time of a batch."""
    return NO_FIGURE if milliseconds is None else f"{milliseconds:,.0f}"


def format_share(share: float | None) -> str:
    """Format a share as a percentage. One that is not zero is not shown as zero."""
    if share is None:
        return NO_FIGURE
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.1f}%"


def format_delay(delay_ms: int | None) -> str:
    """Format how far the watermark is behind the clock; one that is ahead of it is negative."""
    return NO_FIGURE if delay_ms is None else format_age(0, delay_ms)


def format_time(at_ms: int) -> str:
    """Format a time in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _describe_watermark(watermark_ms: int | None, delay_ms: int | None) -> str:
    if watermark_ms is None or delay_ms is None:
        return "none yet"
    position = "behind" if delay_ms >= 0 else "ahead of"
    return f"{format_time(watermark_ms)}, {format_age(0, abs(delay_ms))} {position} the clock"
