"""The watermark: per partition from its records, per source the lowest, never going back."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.pipelines.plan.source import WatermarkRule
from penstock.pipelines.reference.records import BEGINNING, Instant


@dataclass
class Partition:
    """The highest event time seen, and the clock from which its silence counts."""

    highest: Instant
    active: int


class SourceWatermark:
    """The watermark of one source."""

    def __init__(self, rule: WatermarkRule) -> None:
        self.rule = rule
        self.partitions: dict[int, Partition] = {}
        self.now: Instant = BEGINNING

    def see_partitions(self, numbers: Iterable[int], clock: int) -> None:
        """Note which partitions exist; a new one is active from now on."""
        for number in numbers:
            self.partitions.setdefault(number, Partition(BEGINNING, clock))

    def were_unread(self, numbers: Iterable[int], clock: int) -> None:
        """Note of which partitions records may have waited to be read: these were not silent."""
        for number in self.partitions.keys() & set(numbers):
            self.partitions[number].active = clock

    def see_record(self, number: int, clock: int, time: int | None) -> None:
        """Note a record; `time` is None for one that must not move the watermark."""
        self.see_partitions([number], clock)
        partition = self.partitions[number]
        partition.active = clock
        if time is not None:
            partition.highest = max(partition.highest, time)

    @property
    def newest(self) -> Instant:
        """Return the highest event time of all partitions."""
        return max((partition.highest for partition in self.partitions.values()), default=BEGINNING)

    def advance(self, clock: int) -> Instant:
        """Return the watermark after the batch."""
        awake = [partition for partition in self.partitions.values() if not self.is_idle(partition, clock)]
        if awake:
            self.now = max(self.now, min(partition.highest for partition in awake) - self.rule.bound)
        elif self.partitions and self.rule.advance_when_idle:
            self.now = max(self.now, clock - self.rule.bound)
        return self.now

    def is_idle(self, partition: Partition, clock: int) -> bool:
        """Tell whether the partition has been silent for so long that it holds nobody back."""
        return self.rule.idle_after is not None and clock - partition.active >= self.rule.idle_after

    def is_ahead(self, time: int, clock: int) -> bool:
        """Tell whether an event time lies further in the future than is believed."""
        return self.rule.max_ahead is not None and time > clock + self.rule.max_ahead
