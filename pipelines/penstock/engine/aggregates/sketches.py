"""Columns of serialized sketches, merged window by window."""

from dataclasses import dataclass, field
from typing import Protocol

from penstock.engine.columnar import Rows
from penstock.engine.state.header_columns import Int64Array


class SketchMerger(Protocol):
    """Merges serialized sketches."""

    def merge_sketches(self, sketches: list[bytes]) -> bytes:
        """Return the merge of at least one sketch."""


@dataclass(frozen=True)
class SketchColumnMerger:
    """A column of sketches; null is an empty sketch."""

    name: str
    sketch_merger: SketchMerger = field(compare=False)

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Merge incoming sketches into stored ones."""
        incoming_sketches: dict[int, list[bytes]] = {}
        for window, sketch in zip(windows.tolist(), incoming[self.name].tolist(), strict=True):
            if sketch is not None:
                incoming_sketches.setdefault(window, []).append(sketch)
        column = rows[self.name]
        for window, sketches in incoming_sketches.items():
            stored = column[window]
            column[window] = self.sketch_merger.merge_sketches(
                sketches if stored is None else [stored, *sketches]
            )
