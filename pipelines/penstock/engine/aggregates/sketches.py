"""Sketches as bytes: read, brought together and written again, window by window."""

from dataclasses import dataclass, field
from typing import Protocol

from penstock.engine.columnar import Rows
from penstock.engine.state.header_columns import Int64Array


class SketchMerger(Protocol):
    """Sketches that can be merged."""

    def merge_sketches(self, sketches: list[bytes]) -> bytes:
        """One sketch of all that went into these, of which there is at least one."""


@dataclass(frozen=True)
class SketchColumnMerger:
    """A column of sketches; null is one of nothing."""

    name: str
    sketch_merger: SketchMerger = field(compare=False)

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Bring what came together with what is held."""
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
