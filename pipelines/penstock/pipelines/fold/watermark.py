"""The watermark: per partition the newest event time less the bound; for the stream the lowest that counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.pipelines.plan.source import WatermarkRule
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER


@dataclass(frozen=True)
class Mark:
    """How far a partition came, and the batch clock when it was last heard of."""

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
        marks = dict(self.marks or {})
        for name in known:
            marks.setdefault(name, Mark(BEFORE_ALL, clock))
        for name, time in newest.items():
            marks[name] = Mark(max(time, marks[name].newest if name in marks else BEFORE_ALL), clock)
        return Watermark(max(self.value, _stream(rule, marks, clock)), marks)

    def ended(self) -> "Watermark":
        """The watermark at the end of a bounded input: nothing is to come."""
        return replace(self, value=NEVER)

    def next_idle(self, rule: WatermarkRule, clock: int) -> int:
        """The next clock at which silence alone may move the watermark."""
        if rule.idle_after is None or not self.marks:
            return NEVER
        idle_at = [mark.heard + rule.idle_after for mark in self.marks.values()]
        return min((at for at in idle_at if at > clock), default=NEVER)


def _stream(rule: WatermarkRule, marks: Mapping[str, Mark], clock: int) -> int:
    awake = [m for m in marks.values() if rule.idle_after is None or clock - m.heard < rule.idle_after]
    if awake:
        return min(_behind(mark.newest, rule.bound) for mark in awake)
    if marks and rule.advance_when_idle:
        return clock - rule.bound
    return BEFORE_ALL


def _behind(newest: int, bound: int) -> int:
    return BEFORE_ALL if newest <= BEFORE_ALL + bound else newest - bound
