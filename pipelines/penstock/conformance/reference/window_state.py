"""The state of one key's time window: its elements, its last pane, and its trigger."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.conformance.reference.input_records import Instant, StageElement
from penstock.conformance.reference.triggers import ArrivalCounts, ReferenceTrigger


@dataclass(frozen=True)
class EmittedPane:
    """The last pane that a window emitted, and the number of its panes."""

    start: Instant
    end: Instant
    values: tuple[tuple[str, Any], ...]
    records: int
    pane_count: int
    on_time_pane_count: int


@dataclass
class ReferenceWindow:
    """The state of one window. `unretracted_panes` are panes of merged windows that are still to be retracted."""

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    trigger: ReferenceTrigger
    elements: list[StageElement] = field(default_factory=list)
    pending: list[StageElement] = field(default_factory=list)
    pane_count: int = 0
    on_time_pane_count: int = 0
    last_emitted: EmittedPane | None = None
    unretracted_panes: tuple[EmittedPane, ...] = ()
    is_past_end: bool = False
    is_finished: bool = False
    is_finished_at_end: bool = False

    def add_elements(self, elements: Sequence[StageElement], arrivals: ArrivalCounts) -> None:
        """Add the elements of a batch, and notify the trigger once."""
        for element in elements:
            if element.is_retraction:
                del self.elements[
                    next(
                        index
                        for index, existing in enumerate(self.elements)
                        if existing.is_same_element(element)
                    )
                ]
            else:
                self.elements.append(element)
        self.pending.extend(elements)
        self.trigger.on_elements(arrivals)
