"""The batch time: the clock and the watermark of a batch."""

from dataclasses import dataclass, replace

from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS


@dataclass(frozen=True)
class BatchTime:
    """Clock and watermark of a batch, in UTC milliseconds.

    `watermark` is the watermark of this batch, W(N). `watermark_before` is W(N-1), which decides what is
    late. `clock_before` is the clock of the previous batch. Neither clock nor watermark ever decreases. For
    processing-time windows the clock replaces the watermark (see `for_processing_time`); their panes still
    carry `stream_watermark`.
    """

    batch_id: int
    clock_before: int
    clock: int
    watermark_before: int
    watermark: int
    reported_watermark: int | None = None
    max_event_time: int = MIN_TIMESTAMP_MS
    """The highest event time that any batch has read: the event time at the end of input."""

    def for_processing_time(self) -> "BatchTime":
        """Return the batch time for processing-time windows.

        The clock acts as the watermark until the end of input.
        """
        processing_watermark = MAX_TIMESTAMP_MS if self.watermark == MAX_TIMESTAMP_MS else self.clock
        return replace(
            self,
            watermark_before=self.clock_before,
            watermark=processing_watermark,
            reported_watermark=self.watermark,
        )

    @property
    def stream_watermark(self) -> int:
        """The watermark that panes carry."""
        return self.watermark if self.reported_watermark is None else self.reported_watermark
