"""The moment at which a batch is folded: all that the fold knows of time."""

from dataclasses import dataclass, replace

from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS


@dataclass(frozen=True)
class BatchTime:
    """Milliseconds of UTC. `watermark_before` is W(N-1), by which lateness is judged; `watermark` is W(N).

    `clock_before` is the clock of the batch before; both clock and watermark never go back. Windows of
    processing time are judged by the clock in the watermark's place (see `by_the_clock`); `stream_watermark` is
    what their panes say all the same.
    """

    batch_id: int
    clock_before: int
    clock: int
    watermark_before: int
    watermark: int
    reported_watermark: int | None = None
    max_event_time: int = MIN_TIMESTAMP_MS
    """The highest event time that any batch has read: where time stands when the input has ended."""

    def for_processing_time(self) -> "BatchTime":
        """The same moment for windows of processing time: the clock says what has passed, or the input's end."""
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
