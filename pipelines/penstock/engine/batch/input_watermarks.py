"""The watermark of a stream: the lowest of its inputs' watermarks."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.engine.operators.watermark import Watermark
from penstock.engine.plan.sources import FileOrigin, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS

WatermarkRules = Mapping[str, WatermarkStrategy]
"""How each input's watermark follows its records, by topic."""


def topic_of(source: PlanSource) -> str:
    """Return the topic of a source; stored files count as one topic with the source's name."""
    match source.origin:
        case TopicOrigin(topic):
            return topic
        case FileOrigin():
            return source.name


def collect_watermark_rules(sources: Sequence[PlanSource]) -> WatermarkRules:
    """Return the rule of each input."""
    return {topic_of(source): source.watermark for source in sources}


@dataclass(frozen=True)
class StreamWatermarks:
    """The watermark of a stream with the progress of every partition, and the watermark of each input.

    An input whose partitions are all idle holds the stream's watermark at its own last one, unless its rule says
    that it follows the clock.
    """

    stream: Watermark
    inputs: Mapping[str, int]

    def advance(
        self, rules: WatermarkRules, partitions: Iterable[str], newest_times: Mapping[str, int], clock: int
    ) -> "StreamWatermarks":
        """Return the watermarks after a batch with these partitions that read up to `newest_times`."""
        partition_names = set(partitions)
        advanced = {
            topic: self._input_watermark(topic).advance(
                rule,
                [name for name in partition_names if _topic_of_partition(name) == topic],
                {name: time for name, time in newest_times.items() if _topic_of_partition(name) == topic},
                clock,
            )
            for topic, rule in rules.items()
        }
        marks = {
            name: mark for watermark in advanced.values() for name, mark in (watermark.marks or {}).items()
        }
        lowest = min(watermark.value for watermark in advanced.values())
        stream = Watermark(max(self.stream.value, lowest), marks)
        return StreamWatermarks(stream, {topic: watermark.value for topic, watermark in advanced.items()})

    def next_idle(self, rules: WatermarkRules, clock: int) -> int:
        """Return the next clock at which idleness alone may advance the watermark."""
        return min(self._input_watermark(topic).next_idle_clock(rule, clock) for topic, rule in rules.items())

    def clock_reaching(self, rules: WatermarkRules, time: int) -> int:
        """Return the clock at which the watermark reaches a time without records; MAX_TIMESTAMP_MS for never."""
        return max(self._input_watermark(topic).clock_reaching(rule, time) for topic, rule in rules.items())

    def has_idle_partition(self, rules: WatermarkRules, clock: int) -> bool:
        """Whether a partition of some input counts as idle at a clock, without new records until then."""
        return any(
            self._input_watermark(topic).has_idle_partition(rule, clock) for topic, rule in rules.items()
        )

    def with_unread(self, partitions: Collection[str], clock: int) -> "StreamWatermarks":
        """Return the same with these partitions active at this clock, because their records may not be read yet."""
        return replace(self, stream=self.stream.mark_active(partitions, clock))

    def _input_watermark(self, topic: str) -> Watermark:
        marks = {
            name: mark
            for name, mark in (self.stream.marks or {}).items()
            if _topic_of_partition(name) == topic
        }
        return Watermark(self.inputs.get(topic, MIN_TIMESTAMP_MS), marks)


def _topic_of_partition(partition: str) -> str:
    """Return the topic in a partition's name; a topic's own name has no slash."""
    return partition.rsplit("/", 1)[0]
