"""Calls of a stateful function along event time: records of the same time together, with timers between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from penstock.engine.errors import StatefulFunctionError
from penstock.engine.functions.stateful import KeyContext, KeyedRecord, Timer
from penstock.engine.operators.stateful.key_state import KeyState
from penstock.engine.operators.stateful.per_key import MAX_TIMER_ROUNDS, KeyCaller
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

MAX_TIMER_CALLS = 1_000_000
"""The highest number of calls for timers alone, per key, between two records or up to the end of the batch.
"""

_EVENT_TIME = attrgetter("time")


@dataclass(frozen=True)
class EventTimeCaller(KeyCaller):
    """Calls the function for everything before the watermark, in event-time order."""

    def process_key(self, key: tuple[Any, ...], key_state: KeyState, records: Sequence[KeyedRecord]) -> None:
        """Call for the records, which are sorted by time, and for the timers before, between and after them."""
        timeline = KeyTimeline(self, key, key_state)
        for instant, instant_records in groupby(records, _EVENT_TIME):
            timeline.advance_to(instant)
            timeline.call_for_records(instant, tuple(instant_records))
        watermark = self.batch_time.watermark
        is_ended = watermark == MAX_TIMESTAMP_MS
        timeline.advance_to(
            max(self.batch_time.max_event_time, self.batch_time.watermark_before) if is_ended else watermark
        )
        if is_ended:
            timeline.fire_remaining_timers()


@dataclass
class KeyTimeline:
    """One key's progress along event time."""

    caller: EventTimeCaller
    key: tuple[Any, ...]
    key_state: KeyState
    current_time: int = MIN_TIMESTAMP_MS

    def call_for_records(self, instant: int, records: Sequence[KeyedRecord]) -> None:
        """Call for the records of one event time."""
        self.current_time, self.key_state.newest_time = instant, instant
        self._call_function(records, ())

    def advance_to(self, until: int) -> None:
        """Call for the timers up to a time, each at its own time, and drop the key's state if it expires."""
        rounds_at_instant = 0
        for _ in range(MAX_TIMER_CALLS):
            timer_time = self._next_timer_time()
            if not self.key_state.timers or timer_time > min(until, self.caller.expires_at(self.key_state)):
                break
            rounds_at_instant = rounds_at_instant + 1 if timer_time <= self.current_time else 0
            if rounds_at_instant == MAX_TIMER_ROUNDS:
                raise self._make_loop_error(f"set timers that were due immediately {MAX_TIMER_ROUNDS} times")
            self._fire_timers(timer_time)
        else:
            raise self._make_loop_error(
                f"was called {MAX_TIMER_CALLS} times for timers alone, up to event time {until}"
            )
        if self.caller.expires_at(self.key_state) <= until:
            self.key_state.state, self.key_state.timers, self.key_state.newest_time = (
                None,
                (),
                MIN_TIMESTAMP_MS,
            )

    def fire_remaining_timers(self) -> None:
        """Call once for each remaining timer.

        Timers that these calls set are ignored; otherwise they might never end.
        """
        while self.key_state.timers and self._next_timer_time() <= self.caller.expires_at(self.key_state):
            waiting = self._fire_timers(self._next_timer_time())
            self.key_state.timers = tuple(timer for timer in self.key_state.timers if timer in waiting)
        self.key_state.timers = ()

    def _fire_timers(self, timer_time: int) -> Sequence[Timer]:
        """Call for the timers that are due at a time. Return the others."""
        self.current_time = max(self.current_time, timer_time)
        due = tuple(timer for timer in self.key_state.timers if timer.at <= self.current_time)
        waiting = tuple(timer for timer in self.key_state.timers if timer.at > self.current_time)
        self.key_state.timers = waiting
        self._call_function((), due)
        return waiting

    def _call_function(self, records: Sequence[KeyedRecord], due: Sequence[Timer]) -> None:
        key_state, clock = self.key_state, self.caller.batch_time.clock
        update = self.caller.call_function(
            KeyContext(self.key, key_state.state, records, due, key_state.timers, self.current_time, clock)
        )
        key_state.state = update.state
        key_state.timers = key_state.timers if update.timers is None else tuple(sorted(update.timers))
        self.caller.collect_rows(key_state, update, due)

    def _next_timer_time(self) -> int:
        return self.key_state.timers[0].at if self.key_state.timers else MAX_TIMESTAMP_MS

    def _make_loop_error(self, message: str) -> StatefulFunctionError:
        return StatefulFunctionError(self.caller.window.function.name, f"key {self.key} {message}")
