"""Sketches as bytes: read, brought together and written again, window by window."""

from dataclasses import dataclass, field
from typing import Protocol

from penstock.pipelines.fold.rows import Rows
from penstock.pipelines.state.columns import Ints


class Family(Protocol):
    """Sketches that can be merged."""

    def merged(self, sketches: list[bytes]) -> bytes:
        """One sketch of all that went into these, of which there is at least one."""


@dataclass(frozen=True)
class Sketches:
    """A column of sketches; null is one of nothing."""

    name: str
    family: Family = field(compare=False)

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Bring what came together with what is held."""
        came: dict[int, list[bytes]] = {}
        for window, sketch in zip(windows.tolist(), incoming[self.name].tolist(), strict=True):
            if sketch is not None:
                came.setdefault(window, []).append(sketch)
        column = rows[self.name]
        for window, sketches in came.items():
            held = column[window]
            column[window] = self.family.merged(sketches if held is None else [held, *sketches])
