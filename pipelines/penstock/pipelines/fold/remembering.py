"""The fold of a function with a memory: called for each key that has records or due timers, and for no other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import RememberingError, UserCodeError
from penstock.pipelines.fold.identity import key_hashes
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.hand import addresses
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.rows import Rows, numpy_column, python_values
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import (
    Outcome,
    Touched,
    due_groups,
    missed,
    named,
    position_in,
    state_rows,
    together,
)
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.remembering import Answer, Call, Read, Row, Timer
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER, Ints
from penstock.pipelines.state.tree import Tree

AT_ONCE = 1_000
"""How often a key may set timers that are due at once, in one batch: more is taken for a loop without end."""


@dataclass
class Known:
    """What is known of a key, before its call and after it."""

    state: Any = None
    timers: tuple[Timer, ...] = ()
    newest: int = BEFORE_ALL
    rows: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)


def fold_remembering(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Call the function for each key in hand, and keep what it answers."""
    window = stage.plan.window
    assert isinstance(window, Remembering)
    came = key_hashes([elements.column(one.name) for one in stage.key], elements.num_rows)
    keys = together(came, due_groups(state, moment))
    known, key_of_known = state.lookup(keys)
    names = _names(stage, known, key_of_known, elements, position_in(keys, came), len(keys))
    packing = Packing(window)
    hand = [Known() for _ in range(len(keys))]
    for key, one in zip(key_of_known.tolist(), packing.opened(known), strict=True):
        hand[key] = one
    records = _records(stage, elements, position_in(keys, came), len(keys))
    columns = [names.column(one.name).to_pylist() for one in stage.key]
    key_values = list(zip(*columns, strict=True)) if columns else [()] * len(keys)
    calling = Calling(window, moment)
    for values, one, read in zip(key_values, hand, records, strict=True):
        calling.settle(values, one, read)
    rows = packing.packed(hand)
    due_event = np.array([calling.next_event(one) for one in hand], np.int64)
    due_clock = np.array([calling.next_clock(one) for one in hand], np.int64)
    gone = np.array([one.state is None and not one.timers for one in hand], bool)
    touched = Touched(keys, rows, names)
    changed = state_rows(stage, touched, due_event, due_clock, gone)
    panes = _panes(stage, names, hand, moment)
    none, nothing = np.empty(0, np.int64), pa.schema(stage.names).empty_table()
    late, again = np.zeros(elements.num_rows, bool), np.zeros(panes.num_rows, bool)
    return Outcome(changed, panes, late, missed(stage, nothing, none, none), again)


@dataclass(frozen=True)
class Calling:
    """Calls the function at one moment."""

    window: Remembering
    moment: Moment

    def settle(self, key: tuple[Any, ...], one: Known, records: Sequence[Read]) -> None:
        """Call for records and due timers, and again for timers that are due at once, until none is.

        When the input has ended, what a call for timers alone sets comes to nothing: a timer that sets itself
        again would never be the last.
        """
        for read in records:
            one.newest = max(one.newest, read.time)
        due, waiting = self.parted(one.timers)
        if self.is_forgotten(one) and not records and not due:
            one.state, one.timers = None, ()
            return
        for _ in range(AT_ONCE):
            now = (self.moment.watermark, self.moment.clock)
            answer = self.called(Call(key, one.state, records, due, waiting, *now))
            one.state = answer.state
            one.timers = tuple(sorted(waiting if answer.timers is None else answer.timers))
            one.rows += [(self.time_of(row, one, due), row.fields) for row in answer.rows]
            over = self.moment.watermark == NEVER and not records
            due, waiting = self.parted(one.timers)
            one.timers, records = waiting, ()
            if not due or over:
                break
        else:
            found = f"{key} set timers that were due at once {AT_ONCE} times in one batch"
            raise RememberingError(self.window.function.name, found)
        if self.is_forgotten(one):
            one.state, one.timers = None, ()

    def called(self, call: Call[Any]) -> Answer[Any]:
        """Ask the function. RememberingError where it gives no answer, UserCodeError where it fails."""
        try:
            answer = self._function(call)
        except Exception as problem:
            raise UserCodeError(self.window.function.name, problem) from problem
        if not isinstance(answer, Answer):
            found = f"for {call.key} it gave {type(answer).__name__}, no Answer"
            raise RememberingError(self.window.function.name, found)
        return answer

    @cached_property
    def _function(self) -> Any:
        return self.window.function.resolve()

    def parted(self, timers: Sequence[Timer]) -> tuple[tuple[Timer, ...], tuple[Timer, ...]]:
        """Timers that are due, and the others."""
        now = {"event": self.moment.watermark, "processing": self.moment.clock}
        due = tuple(timer for timer in timers if timer.at <= now[timer.clock])
        return due, tuple(timer for timer in timers if timer not in due)

    def time_of(self, row: Row, one: Known, due: Sequence[Timer]) -> int:
        """The event time of a row."""
        if row.at is not None:
            return row.at
        return max([one.newest, *(timer.at for timer in due if timer.clock == "event")])

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
        encode = msgspec.msgpack.Encoder(order="deterministic").encode
        columns: dict[str, list[Any]] = {
            "memory": [None if one.state is None else encode(one.state) for one in hand],
            "timers": [encode(one.timers) for one in hand],
        }
        packed = {
            name: np.fromiter(values, dtype=object, count=len(hand)) for name, values in columns.items()
        }
        newest = np.array([one.newest for one in hand], np.int64)
        return Rows({**packed, "newest": newest}, len(hand))


def _names(
    stage: ReadyStage,
    known: pa.Table,
    key_of_known: Ints,
    elements: pa.Table,
    key_of_element: Ints,
    count: int,
) -> pa.Table:
    """The key of each key in hand; bounds it has none."""
    columns = [one.name for one in stage.key]
    keys = named(columns, known, key_of_known, elements, key_of_element, count).columns
    zero = pa.array(np.zeros(count, np.int64))
    return pa.table([*keys, zero, zero], schema=stage.names)


def _records(stage: ReadyStage, elements: pa.Table, key_of_element: Ints, count: int) -> list[list[Read]]:
    """The records of each key, in the order of their arrival."""
    order = np.lexsort((*addresses(elements), key_of_element))
    chosen = elements.take(pa.array(order))
    names = [*(one.name for one in stage.key), *(one.name for one in stage.fields)]
    columns = [python_values(chosen.column(name)) for name in names]
    found: list[list[Read]] = [[] for _ in range(count)]
    times = numpy_column(chosen.column("_time")).tolist()
    rows = zip(*columns, strict=True) if columns else [()] * len(times)
    for key, time, values in zip(key_of_element[order].tolist(), times, rows, strict=True):
        found[key].append(Read(time, dict(zip(names, values, strict=True))))
    return found


def _panes(stage: ReadyStage, names: pa.Table, hand: Sequence[Known], moment: Moment) -> pa.Table:
    """The rows that the function gave, key by key."""
    key = np.array([number for number, one in enumerate(hand) for _ in one.rows], np.int64)
    said = [row for one in hand for row in one.rows]
    times = np.array([time for time, _ in said], np.int64)
    count = len(said)
    keys = [names.column(one.name).take(pa.array(key)) for one in stage.key]
    about = About(
        pa.table([*keys, pa.array(times), pa.array(times + 1)], schema=stage.names),
        timing=np.full(count, "on_time"),
        final=np.ones(count, bool),
        panes=np.zeros(count, np.int32),
        on_time_panes=np.zeros(count, np.int32),
        records=np.ones(count, np.int64),
    )
    values = [
        np.fromiter((fields.get(each.output) for _, fields in said), dtype=object, count=count)
        for each in stage.accumulators
    ]
    return pane_rows(stage, moment, "insert", about, values)
