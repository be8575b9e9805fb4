"""The moment at which a batch is folded: all that the fold knows of time."""

from dataclasses import dataclass, replace

from penstock.pipelines.state.columns import BEFORE_ALL, NEVER


@dataclass(frozen=True)
class Moment:
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
    watermark_told: int | None = None
    newest: int = BEFORE_ALL
    """The highest event time that any batch has read: where time stands when the input has ended."""

    def by_the_clock(self) -> "Moment":
        """The same moment for windows of processing time: the clock says what has passed, or the input's end."""
        passed = NEVER if self.watermark == NEVER else self.clock
        return replace(
            self, watermark_before=self.clock_before, watermark=passed, watermark_told=self.watermark
        )

    @property
    def stream_watermark(self) -> int:
        """The watermark that panes carry."""
        return self.watermark if self.watermark_told is None else self.watermark_told
