"""The machine of a trigger: its state and its decisions, vectorized over all windows of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.definition.predicates import Predicate
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array

WINDOW_END_COLUMN: Final = "window_end"


class TriggerColumnNames:
    """Names the state columns of the triggers of a stage, numbered in the order in which they are written."""

    def __init__(self) -> None:
        self._numbers = count()

    def next_name(self, suffix: str) -> str:
        """Return the name of the next column, as in `trigger_0_count`."""
        return f"trigger_{next(self._numbers)}_{suffix}"


@dataclass(frozen=True)
class NewElementCounts:
    """New elements of each window: their number, and how many match each predicate."""

    counts: Int64Array
    matches: Mapping[Predicate, Int64Array]

    def for_windows(self, window_mask: BoolArray) -> "NewElementCounts":
        """Return the counts for some windows. All others count nothing."""
        return NewElementCounts(
            self.counts * window_mask,
            {predicate: match_counts * window_mask for predicate, match_counts in self.matches.items()},
        )


@dataclass(frozen=True)
class WindowMerge:
    """Windows that merge into others: their state, and the row that each merges into.

    `has_new_elements` says which of them have elements that no pane has shown. `has_ended` says, for each row,
    whether the watermark has passed the end of the merged window.
    """

    sources: Rows
    target_rows: Int64Array
    has_new_elements: BoolArray
    has_ended: BoolArray

    def for_sources(self, is_chosen: BoolArray) -> "WindowMerge":
        """Return the merge for some of the source windows."""
        return WindowMerge(
            self.sources.where(is_chosen),
            self.target_rows[is_chosen],
            self.has_new_elements[is_chosen],
            self.has_ended,
        )


class TriggerMachine(ABC):
    """A trigger over columns of windows. The defaults here suit a trigger without state.

    `window_mask` selects windows; the columns of all others do not change. Once ready, a trigger stays ready
    until `on_fire` is called, so no machine stores that it was ready.
    """

    def state_columns(self) -> Iterator[StateColumn]:
        """Yield the state columns."""
        return iter(())

    def on_elements(  # noqa: B027  # optional to override
        self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime
    ) -> None:
        """Count new elements."""

    @abstractmethod
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        """Return which windows are ready to fire."""

    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        """Return which windows are ready because the watermark has passed their end."""
        return np.zeros(len(rows), bool)

    def on_fire(self, rows: Rows, window_mask: BoolArray, batch_time: BatchTime) -> BoolArray:
        """Record that these windows fired. Return which of their triggers finished."""
        return window_mask

    def reset(self, rows: Rows, window_mask: BoolArray) -> None:
        """Reset state to the initial values: no counts, no timers."""
        for slot in self.state_columns():
            rows[slot.name][window_mask] = slot.initial

    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:  # noqa: B027  # optional to override
        """Combine the states of merged windows. The target rows are in their initial state."""

    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        """Return the next clock, after this one, at which a timer may fire; MAX_TIMESTAMP_MS if none is set."""
        return np.full(len(rows), MAX_TIMESTAMP_MS, np.int64)
