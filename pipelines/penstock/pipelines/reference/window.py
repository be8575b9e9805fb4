"""One key's window of time: what it holds, what it has shown, and its trigger."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.pipelines.reference.records import Element, Instant
from penstock.pipelines.reference.triggers import Came, Machine


@dataclass(frozen=True)
class Shown:
    """What a window showed last, and how many panes it has shown."""

    start: Instant
    end: Instant
    values: tuple[tuple[str, Any], ...]
    records: int
    panes: int
    on_time_panes: int


@dataclass
class Window:
    """State of one window. `owed` are windows that it swallowed, whose panes still stand somewhere."""

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    machine: Machine
    elements: list[Element] = field(default_factory=list)
    unshown: list[Element] = field(default_factory=list)
    panes: int = 0
    on_time_panes: int = 0
    shown: Shown | None = None
    owed: tuple[Shown, ...] = ()
    past_end: bool = False
    finished: bool = False
    finished_at_end: bool = False

    def take(self, elements: Sequence[Element], came: Came) -> None:
        """Fold a batch's elements, and tell the trigger of them as a whole."""
        for element in elements:
            if element.taken_back:
                del self.elements[next(n for n, held in enumerate(self.elements) if held.is_same(element))]
            else:
                self.elements.append(element)
        self.unshown.extend(elements)
        self.machine.told(came)
