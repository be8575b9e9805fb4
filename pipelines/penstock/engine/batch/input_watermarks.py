"""The inputs of a stream: whose partitions are whose, and the watermark as the lowest of theirs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.engine.operators.watermark import Watermark
from penstock.engine.plan.sources import FileOrigin, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS

WatermarkRules = Mapping[str, WatermarkStrategy]
"""How the watermark of each input follows its records, by the input's topic."""


def topic_of(source: PlanSource) -> str:
    """The topic of a source's records; stored files count as one, of the source's name."""
    match source.origin:
        case TopicOrigin(topic):
            return topic
        case FileOrigin():
            return source.name


def collect_watermark_rules(sources: Sequence[PlanSource]) -> WatermarkRules:
    """The rule of each input."""
    return {topic_of(source): source.watermark for source in sources}


@dataclass(frozen=True)
class StreamWatermarks:
    """How far a stream came: its watermark, with the marks of every partition, and the watermark of each input.

    An input all of whose partitions are idle holds the stream where it held it last, unless its rule says that
    it follows the clock.
    """

    stream: Watermark
    inputs: Mapping[str, int]

    def advance(
        self, rules: WatermarkRules, partitions: Iterable[str], newest_times: Mapping[str, int], clock: int
    ) -> "StreamWatermarks":
        """The same after a batch that knew of these partitions and read as far as `newest` in some."""
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
        """The next clock at which silence alone may move the watermark."""
        return min(self._input_watermark(topic).next_idle_clock(rule, clock) for topic, rule in rules.items())

    def clock_reaching(self, rules: WatermarkRules, time: int) -> int:
        """The clock at which the stream comes to a time, if no input is heard of any more; NEVER for none."""
        return max(self._input_watermark(topic).clock_reaching(rule, time) for topic, rule in rules.items())

    def has_idle_partition(self, rules: WatermarkRules, clock: int) -> bool:
        """Whether a partition of some input is taken for idle at a clock, if nothing is heard of it until then."""
        return any(
            self._input_watermark(topic).has_idle_partition(rule, clock) for topic, rule in rules.items()
        )

    def with_unread(self, partitions: Collection[str], clock: int) -> "StreamWatermarks":
        """The same where records of these partitions may wait to be read: silence counts from this clock on."""
        return replace(self, stream=self.stream.mark_active(partitions, clock))

    def _input_watermark(self, topic: str) -> Watermark:
        marks = {
            name: mark
            for name, mark in (self.stream.marks or {}).items()
            if _topic_of_partition(name) == topic
        }
        return Watermark(self.inputs.get(topic, MIN_TIMESTAMP_MS), marks)


def _topic_of_partition(partition: str) -> str:
    """The topic of a partition's name; a topic's own name has no slash."""
    return partition.rsplit("/", 1)[0]
