"""Watermarks of partitions and streams.

A partition's is its newest event time minus the allowed out-of-orderness; a stream's is the lowest of its
active partitions.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.engine.plan.sources import WatermarkStrategy
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS


@dataclass(frozen=True)
class PartitionProgress:
    """The newest event time of a partition, and the batch clock from which its idle time counts."""

    newest: int
    last_active_clock: int


@dataclass(frozen=True)
class Watermark:
    """The progress of each partition, by name, and the stream's watermark. Immutable."""

    value: int = MIN_TIMESTAMP_MS
    marks: Mapping[str, PartitionProgress] | None = None

    @property
    def is_finite(self) -> bool:
        """Whether it is a real time: neither before the first record nor after the end of input."""
        return MIN_TIMESTAMP_MS < self.value < MAX_TIMESTAMP_MS

    def advance(
        self, rule: WatermarkStrategy, partitions: Iterable[str], newest: Mapping[str, int], clock: int
    ) -> "Watermark":
        """Return the watermark after a batch.

        It knows these `partitions`, and read up to `newest` in some of them.
        """
        marks = dict(self._marks)
        for partition in partitions:
            marks.setdefault(partition, PartitionProgress(MIN_TIMESTAMP_MS, clock))
        for partition, time in newest.items():
            marks[partition] = PartitionProgress(
                max(time, marks[partition].newest if partition in marks else MIN_TIMESTAMP_MS), clock
            )
        return Watermark(max(self.value, _stream_watermark(rule, marks, clock)), marks)

    def mark_active(self, partitions: Collection[str], clock: int) -> "Watermark":
        """Treat these partitions as active at this clock, because they may have unread records."""
        marks = {
            partition: replace(mark, last_active_clock=clock) if partition in partitions else mark
            for partition, mark in self._marks.items()
        }
        return replace(self, marks=marks)

    def has_idle_partition(self, rule: WatermarkStrategy, clock: int) -> bool:
        """Return whether a partition becomes idle by this clock if no record of it arrives."""
        return any(idle_clock <= clock for idle_clock in self._idle_clocks(rule))

    def at_end_of_input(self) -> "Watermark":
        """Return the watermark at the end of a bounded input."""
        return replace(self, value=MAX_TIMESTAMP_MS)

    def next_idle_clock(self, rule: WatermarkStrategy, clock: int) -> int:
        """Return the next clock at which an idle partition may move the watermark."""
        return min(
            (idle_clock for idle_clock in self._idle_clocks(rule) if idle_clock > clock),
            default=MAX_TIMESTAMP_MS,
        )

    def clock_reaching(self, rule: WatermarkStrategy, time: int) -> int:
        """Return the clock at which the watermark reaches a time if no more records arrive.

        MAX_TIMESTAMP_MS means that only records can move it so far.
        """
        if self.value >= time:
            return MIN_TIMESTAMP_MS
        if time == MAX_TIMESTAMP_MS or not rule.advance_when_idle or not self.marks:
            return MAX_TIMESTAMP_MS
        return max([*self._idle_clocks(rule), time + rule.max_out_of_orderness])

    @property
    def _marks(self) -> Mapping[str, PartitionProgress]:
        return self.marks or {}

    def _idle_clocks(self, rule: WatermarkStrategy) -> list[int]:
        return (
            []
            if rule.idle_after is None
            else [mark.last_active_clock + rule.idle_after for mark in self._marks.values()]
        )


def _stream_watermark(rule: WatermarkStrategy, marks: Mapping[str, PartitionProgress], clock: int) -> int:
    active = [
        active_mark
        for active_mark in marks.values()
        if rule.idle_after is None or clock - active_mark.last_active_clock < rule.idle_after
    ]
    if active:
        return min(_subtract_skew(mark.newest, rule.max_out_of_orderness) for mark in active)
    if marks and rule.advance_when_idle:
        return clock - rule.max_out_of_orderness
    return MIN_TIMESTAMP_MS


def _subtract_skew(newest: int, max_out_of_orderness: int) -> int:
    return (
        MIN_TIMESTAMP_MS
        if newest <= MIN_TIMESTAMP_MS + max_out_of_orderness
        else newest - max_out_of_orderness
    )
