"""What sliding order windows show: after each record or at the clock, what eviction has left of a key's records."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.pipelines.fold.order.sequence import Cut, Series
from penstock.pipelines.fold.order.slots import BASE
from penstock.pipelines.fold.rows import Rows
from penstock.pipelines.plan.policies import CountPolicy, DeltaPolicy, TimePolicy
from penstock.pipelines.plan.windows import SlidingOrder
from penstock.pipelines.state.columns import NEVER, Ints


def cut_sliding(window: SlidingOrder, series: Series, heads: Rows, clock: int) -> Cut:
    """Take each key's elements in their order: show, evict, let in, show."""
    windows: list[tuple[int, int, int]] = []
    kept = series.first.copy()
    for number in range(series.keys):
        key = _Key(window, series, heads, number, clock)
        windows += [(begin, end, number) for begin, end in key.showings()]
        kept[number] = key.oldest
        key.note(heads)
    begin, end, of = np.array(windows, np.int64).reshape(-1, 3).T
    return Cut(begin, end, of, kept, heads)


def sliding_due(window: SlidingOrder, heads: Rows) -> Ints:
    """When the clock alone shows something of each key."""
    match window.show:
        case TimePolicy(elapsed):
            return np.where(heads["unshown"] > 0, heads["since"] + elapsed, NEVER)
        case _:
            return np.full(len(heads), NEVER, np.int64)


class _Key:
    """One key on its way through a batch; it holds the elements from `oldest` up to the one that comes in."""

    def __init__(self, window: SlidingOrder, series: Series, heads: Rows, number: int, clock: int) -> None:
        self.oldest = int(series.first[number])
        self._number = number
        self._came = int(series.came[number])
        self._beyond = int(series.beyond[number])
        self._window = window
        self._series = series
        self._clock = clock
        self._unshown = int(heads["unshown"][number])
        self._since = int(heads["since"][number])
        self._distance_shown = window.show if isinstance(window.show, DeltaPolicy) else None
        self._base: Any = heads[BASE][number] if self._distance_shown else None

    def showings(self) -> Iterator[tuple[int, int]]:
        """What the key shows, as stretches of elements."""
        self._evict_by_clock()
        if self._is_due():
            yield from self._shown(self._came)
        for at in range(self._came, self._beyond):
            if self._has_risen(at):
                yield from self._shown(at)
            self._evict_for(at)
            if not self._unshown:
                self._since = self._clock
            self._unshown += 1
            match self._window.show:
                case CountPolicy(n) if self._unshown >= n:
                    yield from self._shown(at + 1)

    def note(self, heads: Rows) -> None:
        """Write down what is known of the key from now on."""
        heads["unshown"][self._number] = self._unshown
        heads["since"][self._number] = self._since
        if self._distance_shown:
            heads[BASE][self._number] = self._base

    def _shown(self, end: int) -> Iterator[tuple[int, int]]:
        self._unshown = 0
        if self.oldest < end:
            yield self.oldest, end

    def _is_due(self) -> bool:
        match self._window.show:
            case TimePolicy(elapsed):
                return self._unshown > 0 and self._clock >= self._since + elapsed
            case _:
                return False

    def _has_risen(self, at: int) -> bool:
        """Whether this element is too far above the one that caused the last showing; it is the next base then."""
        if self._distance_shown is None:
            return False
        now = self._series.distances[self._distance_shown.field][at]
        risen = _rose(self._base, now, self._distance_shown.by)
        if risen or self._base is None:
            self._base = now
        return risen

    def _evict_by_clock(self) -> None:
        match self._window.evict:
            case TimePolicy(elapsed):
                came = self._series.rows["came"]
                while self.oldest < self._came and came[self.oldest] + elapsed <= self._clock:
                    self.oldest += 1

    def _evict_for(self, at: int) -> None:
        match self._window.evict:
            case CountPolicy(n):
                self.oldest = max(self.oldest, at - n + 1)
            case DeltaPolicy(field, by):
                values = self._series.distances[field]
                while self.oldest < at and _rose(values[self.oldest], values[at], by):
                    self.oldest += 1


def _rose(first: Any, now: Any, by: float) -> bool:
    return first is not None and now is not None and now - first > by
