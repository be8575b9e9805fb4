"""The watermark: computed per partition, combined per source by the minimum, never going back."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.conformance.reference.input_records import MIN_TIMESTAMP, Instant
from penstock.engine.plan.sources import WatermarkStrategy


@dataclass
class PartitionWatermark:
    """The highest event time of a partition, and the clock time of its last activity."""

    max_event_time: Instant
    active_since: int


class SourceWatermark:
    """The watermark of one source."""

    def __init__(self, rule: WatermarkStrategy) -> None:
        self.rule = rule
        self.partitions: dict[int, PartitionWatermark] = {}
        self.current: Instant = MIN_TIMESTAMP

    def add_partitions(self, partition_ids: Iterable[int], clock: int) -> None:
        """Add existing partitions; a new one is active from now on."""
        for partition_id in partition_ids:
            self.partitions.setdefault(partition_id, PartitionWatermark(MIN_TIMESTAMP, clock))

    def mark_active(self, partition_ids: Iterable[int], clock: int) -> None:
        """Mark partitions that may have unread records as active."""
        for partition_id in self.partitions.keys() & set(partition_ids):
            self.partitions[partition_id].active_since = clock

    def observe_record(self, partition_id: int, clock: int, time: int | None) -> None:
        """Observe a record; `time` is None if it must not move the watermark."""
        self.add_partitions([partition_id], clock)
        partition = self.partitions[partition_id]
        partition.active_since = clock
        if time is not None:
            partition.max_event_time = max(partition.max_event_time, time)

    @property
    def max_event_time(self) -> Instant:
        """Return the highest event time of all partitions."""
        return max(
            (partition.max_event_time for partition in self.partitions.values()), default=MIN_TIMESTAMP
        )

    def advance(self, clock: int) -> Instant:
        """Return the watermark after the batch."""
        active_partitions = [
            partition for partition in self.partitions.values() if not self.is_idle(partition, clock)
        ]
        if active_partitions:
            self.current = max(
                self.current,
                min(partition.max_event_time for partition in active_partitions)
                - self.rule.max_out_of_orderness,
            )
        elif self.partitions and self.rule.advance_when_idle:
            self.current = max(self.current, clock - self.rule.max_out_of_orderness)
        return self.current

    def is_idle(self, partition: PartitionWatermark, clock: int) -> bool:
        """Tell whether the partition is idle, and does not hold the watermark back."""
        return self.rule.idle_after is not None and clock - partition.active_since >= self.rule.idle_after

    def is_too_far_ahead(self, time: int, clock: int) -> bool:
        """Tell whether an event time exceeds the max future skew."""
        return self.rule.max_future_skew is not None and time > clock + self.rule.max_future_skew
