"""The watermark: per partition the newest event time less the bound; for the stream the lowest that counts."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.pipelines.plan.source import WatermarkRule
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER


@dataclass(frozen=True)
class Mark:
    """How far a partition came, and the batch clock from which its silence counts."""

    newest: int
    heard: int


@dataclass(frozen=True)
class Watermark:
    """The marks of all partitions, by name, and the stream's watermark. A value: `advance` makes a new one."""

    value: int = BEFORE_ALL
    marks: Mapping[str, Mark] | None = None

    @property
    def known(self) -> bool:
        """Whether it lies in time: neither before the first record nor after the end of the input."""
        return BEFORE_ALL < self.value < NEVER

    def advance(
        self, rule: WatermarkRule, known: Iterable[str], newest: Mapping[str, int], clock: int
    ) -> "Watermark":
        """The watermark after a batch that knew of these partitions and read as far as `newest` in some."""
        marks = dict(self._marks)
        for name in known:
            marks.setdefault(name, Mark(BEFORE_ALL, clock))
        for name, time in newest.items():
            marks[name] = Mark(max(time, marks[name].newest if name in marks else BEFORE_ALL), clock)
        return Watermark(max(self.value, _stream(rule, marks, clock)), marks)

    def unread(self, names: Collection[str], clock: int) -> "Watermark":
        """The same where records of these partitions may wait to be read: they count as heard of at this clock."""
        marks = {
            name: replace(mark, heard=clock) if name in names else mark for name, mark in self._marks.items()
        }
        return replace(self, marks=marks)

    def silent(self, rule: WatermarkRule, clock: int) -> bool:
        """Whether a partition is taken for idle at a clock, if nothing is heard of it until then."""
        return any(at <= clock for at in self._idle_at(rule))

    def ended(self) -> "Watermark":
        """The watermark at the end of a bounded input: nothing is to come."""
        return replace(self, value=NEVER)

    def next_idle(self, rule: WatermarkRule, clock: int) -> int:
        """The next clock at which a partition's silence may move the watermark."""
        return min((at for at in self._idle_at(rule) if at > clock), default=NEVER)

    def comes_to(self, rule: WatermarkRule, time: int) -> int:
        """The clock at which it comes to a time, if nothing is heard any more: NEVER where it waits for records."""
        if self.value >= time:
            return BEFORE_ALL
        if time == NEVER or not rule.advance_when_idle or not self.marks:
            return NEVER
        return max([*self._idle_at(rule), time + rule.bound])

    @property
    def _marks(self) -> Mapping[str, Mark]:
        return self.marks or {}

    def _idle_at(self, rule: WatermarkRule) -> list[int]:
        return [] if rule.idle_after is None else [m.heard + rule.idle_after for m in self._marks.values()]


def _stream(rule: WatermarkRule, marks: Mapping[str, Mark], clock: int) -> int:
    awake = [m for m in marks.values() if rule.idle_after is None or clock - m.heard < rule.idle_after]
    if awake:
        return min(_behind(mark.newest, rule.bound) for mark in awake)
    if marks and rule.advance_when_idle:
        return clock - rule.bound
    return BEFORE_ALL


def _behind(newest: int, bound: int) -> int:
    return BEFORE_ALL if newest <= BEFORE_ALL + bound else newest - bound
