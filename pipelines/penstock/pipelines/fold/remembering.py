"""The fold of a function with a memory: called for each key that has records or due timers, and for no other."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import RememberingError, UserCodeError
from penstock.pipelines.fold.fields import fields_of
from penstock.pipelines.fold.keyed import KeysInHand, keys_in_hand, said
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.outputs import sent
from penstock.pipelines.fold.packing import packed
from penstock.pipelines.fold.rows import Rows, numpy_column, python_values
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome, Touched, state_rows
from penstock.pipelines.plan.remembering import UNSAID, Remembering
from penstock.pipelines.remembering import Answer, Call, Read, Timer
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.state.tree import Tree

BLOCK = 10_000
"""Records made ready together: their memory is used again for the next, and never taken by a whole batch."""

AT_ONCE = 1_000
"""How often a key may set timers that are due at once, in one batch: more is taken for a loop without end."""


@dataclass
class Known:
    """What is known of a key, before its call and after it."""

    state: Any = None
    timers: tuple[Timer, ...] = ()
    newest: int = BEFORE_ALL
    times: list[int] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)


def fold_remembering(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Call the function for each key in hand, and keep what it answers."""
    window = stage.plan.window
    assert isinstance(window, Remembering)
    hand = keys_in_hand(stage, state, elements, moment)
    packing, calling = Packing(window), Calling(window, moment)
    known = [Known() for _ in range(len(hand))]
    for key, one in zip(hand.key_of_known.tolist(), packing.opened(hand.known), strict=True):
        known[key] = one
    for values, one, read in zip(_keys(stage, hand), known, _records(stage, hand), strict=True):
        calling.settle(values, one, read)
    due_event = np.array([calling.next_event(one) for one in known], np.int64)
    due_clock = np.array([calling.next_clock(one) for one in known], np.int64)
    gone = np.array([one.state is None and not one.timers for one in known], bool)
    touched = Touched(hand.groups, packing.packed(known), hand.names)
    changed = state_rows(stage, touched, due_event, due_clock, gone)
    key = np.repeat(np.arange(len(hand)), [len(one.rows) for one in known])
    times = np.array([time for one in known for time in one.times], np.int64)
    return said(stage, hand, changed, (key, times, _values(stage, known)), moment)


@dataclass(frozen=True)
class Calling:
    """Calls the function at one moment."""

    window: Remembering
    moment: Moment

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
            one.newest = max([one.newest, *(read.time for read in records)])
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
            newest = max([one.newest, *(timer.at for timer in due if timer.clock == "event")])
            one.times += [newest if row.at is None else row.at for row in answer.rows]
            one.rows += sent(self.window, answer.rows)

    def called(self, call: Call[Any]) -> Answer[Any]:
        """Ask the function. RememberingError where it gives no answer, UserCodeError where it fails."""
        try:
            answer = self._function(call)
        except Exception as problem:
            raise UserCodeError(self.window.function.name, problem) from problem
        if not isinstance(answer, Answer):
            found = f"for {call.key} it gave {type(answer).__name__}, no Answer"
            raise RememberingError(self.window.function.name, found)
        if not self.window.clock and any(timer.clock == "processing" for timer in answer.timers or ()):
            raise RememberingError(self.window.function.name, UNSAID)
        return answer

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
        return min([self.forgets_at(one), *(timer.at for timer in one.timers if timer.clock == "event")])

    def next_clock(self, one: Known) -> int:
        """The clock at which something is to be done about a key."""
        return min([NEVER, *(timer.at for timer in one.timers if timer.clock == "processing")])


@dataclass(frozen=True)
class Packing:
    """What is known of keys, as the state keeps it."""

    window: Remembering

    def opened(self, kept: pa.Table) -> Iterator[Known]:
        """What the state has."""
        memory = msgspec.msgpack.Decoder(self.window.state.resolve())
        timers = msgspec.msgpack.Decoder(tuple[Timer, ...])
        columns = (kept.column(name).to_pylist() for name in ("memory", "timers", "newest"))
        for state, waiting, newest in zip(*columns, strict=True):
            yield Known(None if state is None else memory.decode(state), timers.decode(waiting), newest)

    def packed(self, hand: Sequence[Known]) -> Rows:
        """What the state is to have."""
        columns: dict[str, list[Any]] = {
            "memory": [None if one.state is None else packed(one.state) for one in hand],
            "timers": [packed(one.timers) for one in hand],
        }
        made = {name: np.fromiter(values, dtype=object, count=len(hand)) for name, values in columns.items()}
        newest = np.array([one.newest for one in hand], np.int64)
        return Rows({**made, "newest": newest}, len(hand))


def _keys(stage: ReadyStage, hand: KeysInHand) -> Sequence[tuple[Any, ...]]:
    """The key of each key in hand, as Python has it."""
    columns = [hand.names.column(one.name).to_pylist() for one in stage.key]
    return list(zip(*columns, strict=True)) if columns else [()] * len(hand)


def _records(stage: ReadyStage, hand: KeysInHand) -> Iterator[Sequence[Read]]:
    """The records of each key, in the order of their arrival."""
    names = tuple(one.name for one in (*stage.key, *stage.fields))
    columns = [
        numpy_column(hand.records.column("_time")).tolist(),
        *(_of_records(hand, hand.names.column(one.name)) for one in stage.key),
        *(python_values(hand.records.column(one.name)) for one in stage.fields),
    ]
    bounds = np.searchsorted(hand.key_of_record, np.arange(len(hand) + 1)).tolist()
    for some in _in_blocks(bounds):
        first, last = some[0], some[-1]
        times, *values = (column[first:last] for column in columns)
        # Without a line of Python for each: this is most of what a call of the function costs.
        reads = (
            [*map(Read, times, fields_of(names)(*values))] if names else [Read(time, {}) for time in times]
        )
        yield from (reads[begin - first : end - first] for begin, end in pairwise(some))


def _in_blocks(bounds: list[int]) -> Iterator[list[int]]:
    """The bounds of keys, some keys at a time: as many as have so many records that one more counts little."""
    begin = 0
    while begin < len(bounds) - 1:
        end = max(bisect_right(bounds, bounds[begin] + BLOCK), begin + 2)
        yield bounds[begin:end]
        begin = end - 1


def _of_records(hand: KeysInHand, column: pa.ChunkedArray) -> list[Any]:
    """The value of each record's key, which all records of a key share."""
    values = np.fromiter(python_values(column), dtype=object, count=len(hand))
    of_records: list[Any] = values[hand.key_of_record].tolist()
    return of_records


def _values(stage: ReadyStage, known: Sequence[Known]) -> dict[str, pa.Array]:
    """The columns of the rows, key by key."""
    rows = [fields for one in known for fields in one.rows]
    return {
        each.output: pa.array([fields.get(each.output) for fields in rows], each.type, from_pandas=False)
        for each in stage.accumulators
    }
