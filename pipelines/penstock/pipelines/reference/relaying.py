"""Panes that another stream published, shown as they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.pipelines.plan.relaying import CHANGE, Relayed
from penstock.pipelines.reference.answers import Pane
from penstock.pipelines.reference.firing import Moment
from penstock.pipelines.reference.numbers import canonical
from penstock.pipelines.reference.records import BEGINNING, END, Address, Element


@dataclass
class Relaying:
    """The panes that came in a batch; nothing of them is kept."""

    window: Relayed
    came: list[Element] = field(default_factory=list)

    def fold(self, elements: Sequence[Element], moment: Moment) -> set[Address]:
        """Take the panes."""
        del moment
        self.came = list(elements)
        return {element.address for element in elements}

    def emit(self, moment: Moment) -> Iterator[Pane]:
        """Show those that are changes."""
        for element in self.came:
            change = element.fields[CHANGE]
            if change:
                yield self.pane(element, "insert" if change > 0 else "retract", moment)

    def pane(self, element: Element, kind: Any, moment: Moment) -> Pane:
        """Return a pane as it was shown: in its window, with its values."""
        start, end = (element.fields.get(f"window_{bound}") for bound in ("start", "end"))
        values = ((column.name, canonical(element.fields.get(column.name))) for column in self.window.columns)
        return Pane(
            key=(),
            start=BEGINNING if start is None else start,
            end=END if end is None else end,
            values=tuple(values),
            pane=0,
            timing="on_time",
            on_time_index=0,
            final=False,
            kind=kind,
            records=1,
            batch=moment.batch,
            clock=moment.clock,
            watermark=moment.stream_watermark,
        )

    def missed(self) -> list[Any]:
        """Return nothing: no pane is late for a relay."""
        return []
