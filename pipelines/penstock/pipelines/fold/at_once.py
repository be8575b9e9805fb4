"""The fold of a vectorised function with a memory: one call for all keys that have records or due timers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.errors import RememberingError, UserCodeError
from penstock.pipelines.fold.answered import a_table, answered_rows, answered_states, answered_timers
from penstock.pipelines.fold.keyed import KeysInHand, keys_in_hand, said
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.outputs import all_sent, own_columns
from penstock.pipelines.fold.remembered import Held, dropped_keys, held_by, kept_of
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER, Ints, Mask
from penstock.pipelines.state.tree import Tree
from penstock.pipelines.vectorised import KEY, TIME, Answers, Calls

AT_ONCE = 1_000
"""As of functions that are called key by key: so often timers may be set that are due at once, in one batch."""


def fold_at_once(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Call the function for all keys in hand, and keep what it answers."""
    window = stage.plan.window
    assert isinstance(window, Remembering)
    hand = keys_in_hand(stage, state, elements, moment)
    asking = Asking(stage, window, hand, moment, [])
    held = asking.settled(held_by(window, hand))
    changed = kept_of(stage, hand, held, asking.next_event(held), asking.next_clock(held))
    return said(stage, hand, changed, asking.all_rows(), moment)


@dataclass(frozen=True)
class Given:
    """Rows of one call: the key in hand of each, its event time, and the columns of the result."""

    key: Ints
    times: Ints
    values: pa.Table


@dataclass(frozen=True)
class Asking:
    """Asks the function at one moment, as often as it takes, and gathers its rows."""

    stage: ReadyStage
    window: Remembering
    hand: KeysInHand
    moment: Moment
    given: list[Given]

    def settled(self, held: Held) -> Held:
        """Ask for records and due timers; a record that comes after its key is forgotten finds nothing of it."""
        part_of_record = self.parts(held)
        last_part = np.zeros(len(self.hand), np.int64)
        np.maximum.at(last_part, self.hand.key_of_record, part_of_record)
        silent = np.bincount(self.hand.key_of_record, minlength=len(self.hand)) == 0
        for part in range(int(last_part.max(initial=0)) + 1):
            chosen = part_of_record == part
            came = np.bincount(self.hand.key_of_record[chosen], minlength=len(self.hand)) > 0
            if part:
                held = self.lapsed(held, came)
            held = self.heard(held, chosen)
            about = came | silent if part == 0 else came
            held = self.asked(held, about, chosen, self.moment.watermark, last_part == part)
        return self.forgotten(held, np.ones(len(self.hand), bool))

    def parts(self, held: Held) -> Ints:
        """For each record how often its key was forgotten before it, in this batch."""
        key, after = self.hand.key_of_record, self.window.forget_after
        if after is None or not len(key):
            return np.zeros(len(key), np.int64)
        times = numpy_column(self.hand.records.column(TIME))
        before = np.maximum(highest_before(key, times), held.newest[key])
        cut = (before != BEFORE_ALL) & (times - after >= before)
        begins = np.searchsorted(key, key)
        counted = np.append(0, np.cumsum(cut))
        return np.asarray(counted[1:] - counted[begins], np.int64)

    def lapsed(self, held: Held, of: Mask) -> Held:
        """Forget keys of which nothing was heard for long enough before the record that comes next."""
        held = self.asked(held, of, np.zeros(len(self.hand.key_of_record), bool), NEVER, ~of)
        newest = np.where(of, BEFORE_ALL, held.newest)
        return dropped_keys(replace(held, newest=newest), of)

    def heard(self, held: Held, chosen: Mask) -> Held:
        """The same with the times of some records."""
        newest = held.newest.copy()
        times = numpy_column(self.hand.records.column(TIME))
        np.maximum.at(newest, self.hand.key_of_record[chosen], times[chosen])
        return replace(held, newest=newest)

    def asked(self, held: Held, about: Mask, chosen: Mask, until: int, last: Mask) -> Held:
        """Ask about keys, again for timers that are due at once until none is: none after its key is forgotten."""
        came = np.bincount(self.hand.key_of_record[chosen], minlength=len(self.hand)) > 0
        ends = np.minimum(until, self.forgets_at(held))
        records = self.records if chosen.all() else self.records.filter(pa.array(chosen))
        for _ in range(AT_ONCE):
            asked = about & (came | self.woken(held, ends))
            if not asked.any():
                return held
            held = self.answered(held, np.flatnonzero(asked), records, ends)
            if self.moment.watermark == NEVER:
                # What a call for timers alone sets after the end comes to nothing: it would never be the last.
                over = asked & ~came & last
                held = held.with_timers(
                    ~(self.due(held.timers, ends[held.key_of_timer]) & over[held.key_of_timer])
                )
            came, records = np.zeros(len(self.hand), bool), records.slice(0, 0)
        key = self.hand.names.slice(int(np.flatnonzero(about & self.woken(held, ends))[0]), 1).to_pylist()[0]
        named = tuple(key[one.name] for one in self.stage.key)
        found = f"{named} set timers that were due at once {AT_ONCE} times in one batch"
        raise RememberingError(self.window.function.name, found)

    def answered(self, held: Held, asked: Ints, records: pa.Table, ends: Ints) -> Held:
        """Ask once about some keys; `records` are theirs, and `ends` up to when their timers are due."""
        number = np.full(len(self.hand), -1, np.int64)
        number[asked] = np.arange(len(asked))
        due = self.due(held.timers, ends[held.key_of_timer])
        theirs = number[held.key_of_timer] >= 0
        timers, waiting = (_renumbered(held.timers.filter(pa.array(m & theirs)), number) for m in (due, ~due))
        calls = Calls(
            keys=self.hand.names.select([one.name for one in self.stage.key]).take(pa.array(asked)),
            states=held.states.take(pa.array(asked)),
            records=_renumbered(records, number),
            timers=timers,
            waiting=waiting,
            watermark=self.moment.watermark,
            clock=self.moment.clock,
        )
        answers, name = self.called(calls), self.window.function.name
        states = answered_states(answers, held.states.schema, len(asked), name)
        if answers.rows is not None:
            self.given.append(self.rows(answers.rows, held, asked, timers))
        after = waiting
        if answers.timers is not None:
            after = answered_timers(answers.timers, len(asked), name, clock=self.window.clock)
        others = held.timers.filter(pa.array(~theirs))
        return held.changed(asked, states, pa.concat_tables([others, _renumbered(after, asked)]))

    def rows(self, rows: pa.Table, held: Held, asked: Ints, timers: pa.Table) -> Given:
        """Rows with the event time of each: its own, or that of the newest record or timer of its key."""
        columns = {each.output: each.type for each in self.stage.accumulators}
        rows = all_sent(self.window, a_table(rows, "rows", self.window.function.name))
        number, at, values = answered_rows(rows, columns, len(asked), self.window.function.name)
        values = own_columns(self.window, values)
        newest = held.newest[asked].copy()
        by_event = timers.filter(pc.equal(timers.column("clock"), "event"))
        np.maximum.at(newest, numpy_column(by_event.column(KEY)), numpy_column(by_event.column("at")))
        times = newest[number] if at is None else numpy_column(pc.coalesce(at, pa.array(newest[number])))
        return Given(asked[number], times, values)

    def called(self, calls: Calls) -> Answers:
        """Ask the function. RememberingError where it gives no answer, UserCodeError where it fails."""
        try:
            answers = self._function(calls)
        except Exception as problem:
            raise UserCodeError(self.window.function.name, problem) from problem
        if not isinstance(answers, Answers):
            raise RememberingError(
                self.window.function.name,
                f"it gave {type(answers).__name__}, no Answers of penstock.pipelines.vectorised",
            )
        return answers

    @cached_property
    def _function(self) -> Any:
        return self.window.function.resolve()

    @cached_property
    def records(self) -> pa.Table:
        """The records as the function sees them, by the number of the key in hand."""
        names = [TIME, *(one.name for one in (*self.stage.key, *self.stage.fields))]
        return self.hand.records.select(names).add_column(0, KEY, pa.array(self.hand.key_of_record))

    def due(self, timers: pa.Table, until: Ints) -> Mask:
        """Which timers are due: those of event time up to a moment of each."""
        by_event = np.asarray(pc.equal(timers.column("clock"), "event"))
        return numpy_column(timers.column("at")) <= np.where(by_event, until, self.moment.clock)

    def woken(self, held: Held, ends: Ints) -> Mask:
        """Which keys have due timers."""
        due = self.due(held.timers, ends[held.key_of_timer])
        return np.bincount(held.key_of_timer[due], minlength=len(self.hand)) > 0

    def forgotten(self, held: Held, of: Mask) -> Held:
        """Forget those of some keys of which nothing was heard for long enough."""
        at = self.forgets_at(held)
        return dropped_keys(held, of & (at != NEVER) & (at <= self.moment.watermark))

    def forgets_at(self, held: Held) -> Ints:
        """The watermark at which each key is forgotten."""
        after = self.window.forget_after
        if after is None:
            return np.full(len(self.hand), NEVER, np.int64)
        heard = held.newest != BEFORE_ALL
        return np.where(heard, np.where(heard, held.newest, 0) + after, NEVER)

    def next_event(self, held: Held) -> Ints:
        """The watermark at which something is to be done about each key."""
        return self._earliest(held, "event", self.forgets_at(held))

    def next_clock(self, held: Held) -> Ints:
        """The clock at which something is to be done about each key."""
        return self._earliest(held, "processing", np.full(len(self.hand), NEVER, np.int64))

    def _earliest(self, held: Held, clock: str, at: Ints) -> Ints:
        chosen = np.asarray(pc.equal(held.timers.column("clock"), clock))
        np.minimum.at(at, held.key_of_timer[chosen], numpy_column(held.timers.column("at"))[chosen])
        return at

    def all_rows(self) -> tuple[Ints, Ints, dict[str, pa.Array]]:
        """The rows of all calls: key, event time, and columns."""
        none = np.empty(0, np.int64)
        schema = pa.schema([pa.field(each.output, each.type) for each in self.stage.accumulators])
        values = pa.concat_tables([schema.empty_table(), *(one.values for one in self.given)])
        key, times = (np.concatenate([none, *each]) for each in _columns(self.given))
        return key, times, {name: values.column(name) for name in schema.names}


def highest_before(key: Ints, times: Ints) -> Ints:
    """For each record the highest time of its key before it, for records that stand key by key."""
    different, rank = np.unique(times, return_inverse=True)
    # A key's ranks lie above those of the keys before it, so that the highest so far never is another key's.
    highest = np.maximum.accumulate(key * len(different) + rank) % len(different)
    before = np.append(BEFORE_ALL, different[highest[:-1]])
    return np.where(np.append(True, key[1:] != key[:-1]), BEFORE_ALL, before)


def _columns(given: Sequence[Given]) -> tuple[list[Ints], list[Ints]]:
    return [one.key for one in given], [one.times for one in given]


def _renumbered(table: pa.Table, number: Ints) -> pa.Table:
    """The same rows with other numbers for their keys."""
    keys = number[numpy_column(table.column(KEY))]
    return table.set_column(table.schema.get_field_index(KEY), KEY, pa.array(keys))
