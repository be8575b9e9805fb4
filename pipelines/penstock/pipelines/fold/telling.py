"""Calls of a function with a memory along event time: the records of an instant together, timers between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from penstock.pipelines.errors import RememberingError
from penstock.pipelines.fold.known import Known
from penstock.pipelines.fold.remembering import AT_ONCE, Calling
from penstock.pipelines.remembering import Call, Read, Timer
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

BETWEEN = 1_000_000
"""How often a key is called for timers alone before it must be called for a record, or the batch be over."""

_TIME = attrgetter("time")


@dataclass(frozen=True)
class Telling(Calling):
    """Calls the function for what lies before the watermark, in the order of event time."""

    def settle(self, key: tuple[Any, ...], one: Known, records: Sequence[Read]) -> None:
        """Call for records, which are in order, and for the timers before, between and behind them."""
        walk = Walk(self, key, one)
        for at, some in groupby(records, _TIME):
            walk.to(at)
            walk.tell(at, tuple(some))
        watermark = self.moment.watermark
        ended = watermark == NEVER
        walk.to(max(self.moment.newest, self.moment.watermark_before) if ended else watermark)
        if ended:
            walk.end()


@dataclass
class Walk:
    """One key's way along event time, as far as it came."""

    telling: Telling
    key: tuple[Any, ...]
    one: Known
    now: int = BEFORE_ALL

    def tell(self, at: int, records: Sequence[Read]) -> None:
        """Call for the records of an instant."""
        self.now, self.one.newest = at, at
        self._call(records, ())

    def to(self, until: int) -> None:
        """Call for the timers up to an instant, each at its own, and forget the key where its time is over."""
        standing = 0
        for _ in range(BETWEEN):
            at = self._next_timer()
            if not self.one.timers or at > min(until, self.telling.forgets_at(self.one)):
                break
            standing = standing + 1 if at <= self.now else 0
            if standing == AT_ONCE:
                raise self._stuck(f"set timers that were due at once {AT_ONCE} times")
            self._fire(at)
        else:
            raise self._stuck(f"was called for timers alone {BETWEEN} times up to {until}")
        if self.telling.forgets_at(self.one) <= until:
            self.one.state, self.one.timers, self.one.newest = None, (), BEFORE_ALL

    def end(self) -> None:
        """Call for the timers that are left, once each: of what they set none would ever be the last."""
        while self.one.timers and self._next_timer() <= self.telling.forgets_at(self.one):
            left = self._fire(self._next_timer())
            self.one.timers = tuple(timer for timer in self.one.timers if timer in left)
        self.one.timers = ()

    def _fire(self, at: int) -> Sequence[Timer]:
        """Call for the timers of an instant; return those that wait for a later one."""
        self.now = max(self.now, at)
        due = tuple(timer for timer in self.one.timers if timer.at <= self.now)
        left = tuple(timer for timer in self.one.timers if timer.at > self.now)
        self.one.timers = left
        self._call((), due)
        return left

    def _call(self, records: Sequence[Read], due: Sequence[Timer]) -> None:
        one, clock = self.one, self.telling.moment.clock
        answer = self.telling.called(Call(self.key, one.state, records, due, one.timers, self.now, clock))
        one.state = answer.state
        one.timers = one.timers if answer.timers is None else tuple(sorted(answer.timers))
        self.telling.take_rows(one, answer, due)

    def _next_timer(self) -> int:
        return self.one.timers[0].at if self.one.timers else NEVER

    def _stuck(self, found: str) -> RememberingError:
        return RememberingError(self.telling.window.function.name, f"{self.key} {found}")
