"""Passes on the panes that another stream published."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.conformance.reference.input_records import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    RecordAddress,
    StageElement,
)
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.conformance.reference.output_rows import Pane
from penstock.conformance.reference.pane_emission import ReferenceBatchTime
from penstock.conformance.reference.single_rows import build_only_pane
from penstock.engine.plan.changelog import PANE_CHANGE_COLUMN, ChangelogWindows


@dataclass
class ReferenceChangelogOperator:
    """The panes of one batch; no state."""

    window: ChangelogWindows
    elements: list[StageElement] = field(default_factory=list)

    def process_elements(
        self, elements: Sequence[StageElement], batch_time: ReferenceBatchTime
    ) -> set[RecordAddress]:
        """Collect the panes."""
        del batch_time
        self.elements = list(elements)
        return {element.address for element in elements}

    def emit_panes(self, batch_time: ReferenceBatchTime) -> Iterator[Pane]:
        """Emit the panes that are changes."""
        for element in self.elements:
            change = element.fields[PANE_CHANGE_COLUMN]
            if change:
                yield self.build_pane(element, "insert" if change > 0 else "retract", batch_time)

    def build_pane(self, element: StageElement, kind: Any, batch_time: ReferenceBatchTime) -> Pane:
        """Return a pane with its original window and values."""
        start, end = (element.fields.get(f"window_{bound}") for bound in ("start", "end"))
        values = (
            (column.name, canonicalize(element.fields.get(column.name))) for column in self.window.columns
        )
        bounds = (MIN_TIMESTAMP if start is None else start, MAX_TIMESTAMP if end is None else end)
        return build_only_pane((), bounds, values, batch_time, final=False, kind=kind)

    def take_late_rows(self) -> list[Any]:
        """Return nothing: no pane is late here."""
        return []
