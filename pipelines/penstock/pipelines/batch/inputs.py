"""The inputs of a stream: whose partitions are whose, and the watermark as the lowest of theirs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.pipelines.fold.watermark import Watermark
from penstock.pipelines.plan.source import Files, Source, Topic, WatermarkRule
from penstock.pipelines.state.columns import BEFORE_ALL

Rules = Mapping[str, WatermarkRule]
"""How the watermark of each input follows its records, by the input's topic."""


def topic_of(source: Source) -> str:
    """The topic of a source's records; stored files count as one, of the source's name."""
    match source.origin:
        case Topic(topic):
            return topic
        case Files():
            return source.name


def rules_of(sources: Sequence[Source]) -> Rules:
    """The rule of each input."""
    return {topic_of(source): source.watermark for source in sources}


@dataclass(frozen=True)
class Reached:
    """How far a stream came: its watermark, with the marks of every partition, and the watermark of each input.

    An input all of whose partitions are idle holds the stream where it held it last, unless its rule says that
    it follows the clock.
    """

    stream: Watermark
    inputs: Mapping[str, int]

    def advance(self, rules: Rules, known: Iterable[str], newest: Mapping[str, int], clock: int) -> "Reached":
        """The same after a batch that knew of these partitions and read as far as `newest` in some."""
        names = set(known)
        moved = {
            topic: self._of(topic).advance(
                rule,
                [name for name in names if _topic(name) == topic],
                {name: time for name, time in newest.items() if _topic(name) == topic},
                clock,
            )
            for topic, rule in rules.items()
        }
        marks = {name: mark for each in moved.values() for name, mark in (each.marks or {}).items()}
        lowest = min(each.value for each in moved.values())
        stream = Watermark(max(self.stream.value, lowest), marks)
        return Reached(stream, {topic: each.value for topic, each in moved.items()})

    def next_idle(self, rules: Rules, clock: int) -> int:
        """The next clock at which silence alone may move the watermark."""
        return min(self._of(topic).next_idle(rule, clock) for topic, rule in rules.items())

    def comes_to(self, rules: Rules, time: int) -> int:
        """The clock at which the stream comes to a time, if no input is heard of any more; NEVER for none."""
        return max(self._of(topic).comes_to(rule, time) for topic, rule in rules.items())

    def silent(self, rules: Rules, clock: int) -> bool:
        """Whether a partition of some input is taken for idle at a clock, if nothing is heard of it until then."""
        return any(self._of(topic).silent(rule, clock) for topic, rule in rules.items())

    def unread(self, names: Collection[str], clock: int) -> "Reached":
        """The same where records of these partitions may wait to be read: silence counts from this clock on."""
        return replace(self, stream=self.stream.unread(names, clock))

    def _of(self, topic: str) -> Watermark:
        marks = {name: mark for name, mark in (self.stream.marks or {}).items() if _topic(name) == topic}
        return Watermark(self.inputs.get(topic, BEFORE_ALL), marks)


def _topic(partition: str) -> str:
    """The topic of a partition's name; a topic's own name has no slash."""
    return partition.rsplit("/", 1)[0]
