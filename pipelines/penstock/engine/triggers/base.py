"""What a trigger is to the fold: a machine that speaks for all windows of a batch at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.plan.predicates import Predicate
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array


@dataclass(frozen=True)
class NewElementCounts:
    """What a batch brought to each window: how many elements, and how many that match each predicate."""

    counts: Int64Array
    matches: Mapping[Predicate, Int64Array]

    def for_windows(self, window_mask: BoolArray) -> "NewElementCounts":
        """The same for some windows; the others are told of nothing."""
        return NewElementCounts(
            self.counts * window_mask,
            {predicate: match_counts * window_mask for predicate, match_counts in self.matches.items()},
        )


@dataclass(frozen=True)
class WindowMerge:
    """Windows that become parts of others: what was kept of each, and into which row it goes.

    `unshown` says which of them have elements that no pane has shown; `ended`, for each row, whether the end of
    the merged window lies behind the watermark.
    """

    sources: Rows
    target_rows: Int64Array
    has_unshown: BoolArray
    has_ended: BoolArray

    def for_sources(self, is_chosen: BoolArray) -> "WindowMerge":
        """The same, for some of the parts."""
        return WindowMerge(
            self.sources.where(is_chosen),
            self.target_rows[is_chosen],
            self.has_unshown[is_chosen],
            self.has_ended,
        )


class TriggerMachine:
    """A trigger over columns of windows. What is written here holds for one that keeps nothing.

    `who` says which windows are meant; the columns of all others stay as they are. Readiness only grows until
    the machine is told that it fired, so none remembers that it was ready once.
    """

    def state_columns(self) -> Iterator[StateColumn]:
        """The columns that it keeps."""
        return iter(())

    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        """Be told what came."""

    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        """Whether it is ready."""
        raise NotImplementedError

    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        """Whether it is ready, and a part of it that is ready too waits for the watermark alone."""
        return np.zeros(len(rows), bool)

    def on_fire(self, rows: Rows, window_mask: BoolArray, batch_time: BatchTime) -> BoolArray:
        """Be told that these fired; answers which of them have finished."""
        return window_mask

    def reset(self, rows: Rows, window_mask: BoolArray) -> None:
        """Begin again, with no count and no timer left."""
        for slot in self.state_columns():
            rows[slot.name][window_mask] = slot.initial

    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        """Become, from nothing, what the machines of merged windows add up to."""

    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        """The next clock, after this one, at which a timer may make it ready; NEVER where none is set."""
        return np.full(len(rows), MAX_TIMESTAMP_MS, np.int64)
