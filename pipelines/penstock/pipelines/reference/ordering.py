"""A batch for order windows: record by record, nothing late, each window one pane."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling
from penstock.pipelines.reference.answers import Pane
from penstock.pipelines.reference.firing import Moment
from penstock.pipelines.reference.order import Contents, SlidingKey, TumblingKey, bounds, key_state
from penstock.pipelines.reference.records import Address, Element
from penstock.pipelines.reference.values import values


@dataclass
class Ordering:
    """The order windows of all keys."""

    stage: Stage
    window: Tumbling | SlidingOrder
    keys: dict[tuple[Any, ...], TumblingKey | SlidingKey] = field(default_factory=dict)
    shown: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))
    waiting: list[Pane] = field(default_factory=list)

    def fold(self, elements: Sequence[Element], moment: Moment) -> set[Address]:
        """Let the clock do its part for every key, then take the records in their order; all are taken."""
        for key, state in self.keys.items():
            self.note(key, state.begin(moment.clock), moment)
        for element in elements:
            state = self.keys.setdefault(element.key, key_state(self.window))
            self.note(element.key, state.take(element, moment.clock), moment)
        return {element.address for element in elements}

    def note(self, key: tuple[Any, ...], closed: Iterator[Contents], moment: Moment) -> None:
        """Make a pane of each window that is shown."""
        for contents in closed:
            self.waiting.append(self.pane(key, contents, moment))
            self.shown[key] += 1

    def pane(self, key: tuple[Any, ...], contents: Contents, moment: Moment) -> Pane:
        """Return the only pane of a window."""
        start, end = bounds(contents)
        return Pane(
            key=key,
            start=start,
            end=end,
            values=values(self.stage.aggregates, contents),
            pane=0,
            timing="on_time",
            on_time_index=0,
            final=True,
            kind="insert",
            records=len(contents),
            batch=moment.batch,
            clock=moment.clock,
            watermark=moment.stream_watermark,
            number=self.shown[key],
        )

    def emit(self, moment: Moment) -> Iterator[Pane]:
        """Yield the batch's panes, which the policies have judged already, with the watermark as it is now."""
        waiting, self.waiting = self.waiting, []
        yield from (replace(pane, watermark=moment.stream_watermark) for pane in waiting)

    def missed(self) -> list[Any]:
        """Return nothing: no record is late for an order window."""
        return []
