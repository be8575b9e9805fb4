"""What a trigger is to the fold: a machine that speaks for all windows of a batch at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Rows, Slot
from penstock.pipelines.plan.predicates import Predicate
from penstock.pipelines.state.columns import NEVER, Ints, Mask


@dataclass(frozen=True)
class Elements:
    """What a batch brought to each window: how many elements, and how many that match each predicate."""

    count: Ints
    matches: Mapping[Predicate, Ints]

    def among(self, who: Mask) -> "Elements":
        """The same for some windows; the others are told of nothing."""
        return Elements(self.count * who, {p: n * who for p, n in self.matches.items()})


@dataclass(frozen=True)
class Merging:
    """Windows that become parts of others: what was kept of each, and into which row it goes.

    `unshown` says which of them have elements that no pane has shown; `ended`, for each row, whether the end of
    the merged window lies behind the watermark.
    """

    parts: Rows
    into: Ints
    unshown: Mask
    ended: Mask

    def among(self, chosen: Mask) -> "Merging":
        """The same, for some of the parts."""
        return Merging(self.parts.where(chosen), self.into[chosen], self.unshown[chosen], self.ended)


class Machine:
    """A trigger over columns of windows. What is written here holds for one that keeps nothing.

    `who` says which windows are meant; the columns of all others stay as they are. Readiness only grows until
    the machine is told that it fired, so none remembers that it was ready once.
    """

    def slots(self) -> Iterator[Slot]:
        """The columns that it keeps."""
        return iter(())

    def observe(self, rows: Rows, came: Elements, moment: Moment) -> None:
        """Be told what came."""

    def ready(self, rows: Rows, moment: Moment) -> Mask:
        """Whether it is ready."""
        raise NotImplementedError

    def at_end(self, rows: Rows, moment: Moment) -> Mask:
        """Whether it is ready, and a part of it that is ready too waits for the watermark alone."""
        return np.zeros(len(rows), bool)

    def fire(self, rows: Rows, who: Mask, moment: Moment) -> Mask:
        """Be told that these fired; answers which of them have finished."""
        return who

    def reset(self, rows: Rows, who: Mask) -> None:
        """Begin again, with no count and no timer left."""
        for slot in self.slots():
            rows[slot.name][who] = slot.initial

    def merge(self, rows: Rows, merging: Merging) -> None:
        """Become, from nothing, what the machines of merged windows add up to."""

    def clock_due(self, rows: Rows, moment: Moment) -> Ints:
        """The next clock, after this one, at which a timer may make it ready; NEVER where none is set."""
        return np.full(len(rows), NEVER, np.int64)
