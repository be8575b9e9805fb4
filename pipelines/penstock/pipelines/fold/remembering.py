"""The fold of a function with a memory: called for each key that has records or due timers, and for no other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import RememberingError, UserCodeError
from penstock.pipelines.fold.given import Given
from penstock.pipelines.fold.keyed import keys_in_hand, said
from penstock.pipelines.fold.known import Known, Settled, opened
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.outputs import sent
from penstock.pipelines.fold.reads import keys_of, reads_of
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome, Touched, state_rows
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.remembering import Answer, Call, Read, Timer
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.state.tree import Tree

AT_ONCE = 1_000
"""How often a key may set timers that are due at once, in one batch: more is taken for a loop without end."""

_TIME = attrgetter("time")


def fold_remembering(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Call the function for each key in hand, and keep what it answers."""
    window = stage.plan.window
    assert isinstance(window, Remembering)
    hand = keys_in_hand(stage, state, elements, moment)
    given = Given(window)
    calling, settled = Calling(window, moment, given), Settled(given)
    for key, one, reads in zip(
        keys_of(stage, hand), opened(window, hand), reads_of(stage, hand), strict=True
    ):
        calling.settle(key, one, reads)
        settled.add(one, calling.next_event(one), calling.next_clock(one))
    touched = Touched(hand.groups, settled.kept(), hand.names)
    changed = state_rows(stage, touched, *settled.due, settled.dropped)
    key_of_row = np.repeat(np.arange(len(hand)), settled.counts)
    rows = (key_of_row, given.instants(settled.times), row_columns(stage, given, settled.rows))
    return said(stage, hand, changed, rows, moment)


@dataclass(frozen=True)
class Calling:
    """Calls the function at one moment."""

    window: Remembering
    moment: Moment
    given: Given

    def settle(self, key: tuple[Any, ...], one: Known, records: Sequence[Read]) -> None:
        """Call for records and due timers; a record that comes after the key is forgotten finds nothing of it."""
        parts = self.parts(one.newest, records)
        for number, part in enumerate(parts, start=1):
            if part and self.forgets_at(one) <= part[0].time:
                self.ask(key, one, (), NEVER, last=False)
                one.state, one.timers, one.newest = None, (), BEFORE_ALL
            self.ask(key, one, part, self.moment.watermark, last=number == len(parts))
        if self.is_forgotten(one):
            one.state, one.timers = None, ()

    def parts(self, newest: int, records: Sequence[Read]) -> Sequence[Sequence[Read]]:
        """The records of a key, cut where it is forgotten between them."""
        after = self.window.forget_after
        if after is None or not records:
            return [records]
        cuts = []
        for at, read in enumerate(records):
            if at and read.time >= newest + after:
                cuts.append(at)
            newest = max(newest, read.time)
        return [records[begin:end] for begin, end in pairwise([0, *cuts, len(records)])]

    def ask(
        self, key: tuple[Any, ...], one: Known, records: Sequence[Read], until: int, *, last: bool
    ) -> None:
        """Call for records and due timers, and again for timers that are due at once, until none is.

        No timer of event time comes after the key is forgotten. When the input has ended, what a call for timers
        alone sets comes to nothing: a timer that sets itself again would never be the last.
        """
        if records:
            one.newest = max(one.newest, *map(_TIME, records))
        until = min(until, self.forgets_at(one))
        due, waiting = self.parted(one.timers, until)
        for _ in range(AT_ONCE):
            if not records and not due:
                break
            now = (self.moment.watermark, self.moment.clock)
            answer = self.called(Call(key, one.state, records, due, waiting, *now))
            one.state = answer.state
            after = waiting if answer.timers is None else tuple(sorted(answer.timers))
            self.take_rows(one, answer, due)
            over = self.moment.watermark == NEVER and last and not records
            due, waiting = self.parted(after, until)
            records = ()
            if over:
                due = ()
        else:
            found = f"{key} set timers that were due at once {AT_ONCE} times in one batch"
            raise RememberingError(self.window.function.name, found)
        one.timers = waiting

    def take_rows(self, one: Known, answer: Answer[Any], due: Sequence[Timer]) -> None:
        """Keep the rows of an answer; those without an event time have that of the newest record or timer."""
        if answer.rows:
            self.given.rows(answer.rows)
            newest = max([one.newest, *(timer.at for timer in due if timer.clock == "event")])
            one.times += [newest if row.at is None else row.at for row in answer.rows]
            one.rows += sent(self.window, answer.rows)

    def called(self, call: Call[Any]) -> Answer[Any]:
        """Ask the function. RememberingError where it gives no answer, UserCodeError where it fails."""
        try:
            answer = self._function(call)
        except Exception as problem:
            raise UserCodeError(self.window.function.name, problem) from problem
        return self.given.answer(answer, call.key)

    @cached_property
    def _function(self) -> Any:
        return self.window.function.resolve()

    def parted(self, timers: tuple[Timer, ...], until: int) -> tuple[tuple[Timer, ...], tuple[Timer, ...]]:
        """Timers that are due, those of event time up to a moment, and the others."""
        if not timers:
            return (), ()
        now = {"event": until, "processing": self.moment.clock}
        due = tuple(timer for timer in timers if timer.at <= now[timer.clock])
        return due, tuple(timer for timer in timers if timer.at > now[timer.clock])

    def is_forgotten(self, one: Known) -> bool:
        """Whether nothing was heard of a key for so long that it goes."""
        at = self.forgets_at(one)
        return at != NEVER and at <= self.moment.watermark

    def forgets_at(self, one: Known) -> int:
        """The watermark at which a key is forgotten."""
        after = self.window.forget_after
        return NEVER if after is None or one.newest == BEFORE_ALL else one.newest + after

    def next_event(self, one: Known) -> int:
        """The watermark at which something is to be done about a key."""
        if not one.timers:
            return self.forgets_at(one)
        return min([self.forgets_at(one), *(timer.at for timer in one.timers if timer.clock == "event")])

    def next_clock(self, one: Known) -> int:
        """The clock at which something is to be done about a key."""
        if not one.timers:
            return NEVER
        return min([NEVER, *(timer.at for timer in one.timers if timer.clock == "processing")])


def row_columns(stage: ReadyStage, given: Given, rows: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """The columns of the rows, key by key."""
    given.refuse_unknown()
    return {each.output: given.column(each.output, each.type, rows) for each in stage.accumulators}
