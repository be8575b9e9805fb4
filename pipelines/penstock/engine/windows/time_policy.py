"""The policy of order windows by time on the batch clock."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.engine.columnar import Rows
from penstock.engine.definition.argument_checks import require_positive
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.windows.element_sequence import ElementSequence
from penstock.engine.windows.order_policy import ClosePolicy, EvictionPolicy, TriggerPolicy


@dataclass(frozen=True)
class TimePolicy(ClosePolicy, EvictionPolicy, TriggerPolicy):
    """Time on the batch clock.

    Tumbling: the window closes at the first batch, including empty ones, whose clock is at least `elapsed` after
    the clock of its first record, and before the records of that batch. Eviction: records that arrived `elapsed` or
    longer ago are evicted. Trigger: as for tumbling, counted from the first record that is not yet emitted.
    """

    uses_clock: ClassVar[bool] = True

    elapsed: int

    def __post_init__(self) -> None:
        require_positive(self.elapsed, "window.time")

    def describe_close(self) -> str:
        """Describe when a window closes."""
        return f"{format_duration(self.elapsed)} after its first record, on the batch clock"

    def describe_eviction(self) -> str:
        """Describe which records remain."""
        return f"records that arrived less than {format_duration(self.elapsed)} ago"

    def describe_trigger(self) -> str:
        """Describe when the content is emitted."""
        return f"{format_duration(self.elapsed)} after the first record that is not yet emitted"

    def number_windows(
        self, sequence: ElementSequence, key_headers: Rows, clock: int
    ) -> tuple[Int64Array, Int64Array]:
        """Close windows that are due, before the new records."""
        is_due = (sequence.first_incoming > sequence.first_of_key) & (
            key_headers["since_clock"] + self.elapsed <= clock
        )
        return np.where(sequence.is_buffered, 0, is_due[sequence.key_of_element]), is_due.astype(np.int64)

    def next_close_clock(self, key_headers: Rows, has_buffered: BoolArray) -> Int64Array:
        """Return when each open window is due."""
        return np.where(has_buffered, key_headers["since_clock"] + self.elapsed, MAX_TIMESTAMP_MS)

    def evict_by_clock(self, sequence: ElementSequence, oldest: int, end: int, clock: int) -> int:
        """Evict the records that arrived too long ago."""
        arrival_clocks = sequence.rows["arrival_clock"]
        while oldest < end and arrival_clocks[oldest] + self.elapsed <= clock:
            oldest += 1
        return oldest

    def fires_by_clock(self, waiting_count: int, waiting_since: int, clock: int) -> bool:
        """Return whether the first of the waiting records has waited long enough."""
        return waiting_count > 0 and clock >= waiting_since + self.elapsed

    def next_firing_clock(self, key_headers: Rows) -> Int64Array:
        """Return when the waiting records of each key are due."""
        return np.where(
            key_headers["elements_since_pane"] > 0,
            key_headers["since_clock"] + self.elapsed,
            MAX_TIMESTAMP_MS,
        )


@keyword(
    "elapsed",
    synonyms=("duration", "time"),
    duration_hint="window: {fixed: {}} for windows of event time, or {elapsed: {}} for windows in record order",
)
def elapsed(duration: Duration) -> TimePolicy:
    """A policy of order windows by the clock of the batches.

    Args:
        duration: the time since the first record of the window, or since the last firing.

    Example:
        window(tumbling(elapsed("1 minute")))

    Not promised: equal windows in a repeated run, because the clock of its batches differs.
    """
    return TimePolicy(to_milliseconds(duration, "window.elapsed"))
