"""Runs a stateful function in event-time order, with timers between the records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from penstock.conformance.reference.input_records import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Instant,
    RecordAddress,
    StageElement,
)
from penstock.conformance.reference.output_rows import LateRow, Pane
from penstock.conformance.reference.pane_emission import ReferenceBatchTime
from penstock.conformance.reference.single_rows import build_late_row
from penstock.conformance.reference.stateful import ReferenceKeyState, ReferenceStatefulOperator
from penstock.engine.functions.stateful import KeyContext, KeyedRecord, Timer


@dataclass
class ReferenceEventTimeStatefulOperator(ReferenceStatefulOperator):
    """The state of all keys, and the records that wait for the watermark."""

    late_rows: list[LateRow] = field(default_factory=list)

    def process_elements(
        self, elements: Sequence[StageElement], batch_time: ReferenceBatchTime
    ) -> set[RecordAddress]:
        """Buffer records; those behind the watermark are late."""
        for element in elements:
            if element.time < batch_time.watermark_before:
                self.late_rows.append(build_late_row(element, batch_time))
            else:
                self.elements_by_key.setdefault(element.key, []).append(element)
        return {element.address for element in elements if element.time >= batch_time.watermark_before}

    def emit_panes(self, batch_time: ReferenceBatchTime) -> Iterator[Pane]:
        """Process records up to the watermark, time by time, with the timers in order."""
        for key in list(dict.fromkeys([*self.key_states, *self.elements_by_key])):
            key_state = self.key_states.setdefault(key, ReferenceKeyState())
            records = sorted(
                self.elements_by_key.pop(key, []), key=lambda element: (element.time, element.address)
            )
            waiting_elements = [element for element in records if element.time >= batch_time.watermark]
            for instant, instant_elements in groupby(
                records[: len(records) - len(waiting_elements)], lambda element: element.time
            ):
                yield from self.fire_timers_until(key, key_state, instant, batch_time)
                yield from self.call_with_records(key, key_state, list(instant_elements), batch_time)
            is_ended = batch_time.watermark == MAX_TIMESTAMP
            until = (
                max(batch_time.max_event_time, batch_time.watermark_before)
                if is_ended
                else batch_time.watermark
            )
            yield from self.fire_timers_until(key, key_state, until, batch_time)
            if is_ended:
                yield from self.fire_last_timers(key, key_state, batch_time)
            if waiting_elements:
                self.elements_by_key[key] = waiting_elements
            if key_state.state is None and not key_state.timers:
                del self.key_states[key]

    def call_with_records(
        self,
        key: tuple[Any, ...],
        key_state: ReferenceKeyState,
        elements: list[StageElement],
        batch_time: ReferenceBatchTime,
    ) -> Iterator[Pane]:
        """Call the function with the records of one time."""
        key_state.max_event_time = key_state.processed_until = elements[0].time
        yield from self.call_function(
            key,
            key_state,
            [KeyedRecord(element.time, element.fields) for element in elements],
            [],
            batch_time,
        )

    def fire_timers_until(
        self,
        key: tuple[Any, ...],
        key_state: ReferenceKeyState,
        until: Instant,
        batch_time: ReferenceBatchTime,
    ) -> Iterator[Pane]:
        """Fire the timers up to a time, each at its own, and expire the key."""
        while key_state.timers and key_state.timers[0].at <= min(until, self.expires_at(key_state)):
            yield from self.fire_next_timers(key, key_state, batch_time)
        if self.expires_at(key_state) <= until:
            key_state.state, key_state.timers, key_state.max_event_time = None, [], MIN_TIMESTAMP

    def fire_last_timers(
        self, key: tuple[Any, ...], key_state: ReferenceKeyState, batch_time: ReferenceBatchTime
    ) -> Iterator[Pane]:
        """Fire the remaining timers at the end of the input; timers that they set are dropped."""
        while key_state.timers and key_state.timers[0].at <= self.expires_at(key_state):
            timers_before = key_state.timers
            yield from self.fire_next_timers(key, key_state, batch_time)
            key_state.timers = [
                timer
                for timer in key_state.timers
                if timer in timers_before and timer.at > key_state.processed_until
            ]
        key_state.timers = []

    def fire_next_timers(
        self, key: tuple[Any, ...], key_state: ReferenceKeyState, batch_time: ReferenceBatchTime
    ) -> Iterator[Pane]:
        """Fire the earliest timers."""
        key_state.processed_until = max(key_state.processed_until, key_state.timers[0].at)
        due_timers = [timer for timer in key_state.timers if timer.at <= key_state.processed_until]
        key_state.timers = [timer for timer in key_state.timers if timer.at > key_state.processed_until]
        yield from self.call_function(key, key_state, [], due_timers, batch_time)

    def call_function(
        self,
        key: tuple[Any, ...],
        key_state: ReferenceKeyState,
        records: list[KeyedRecord],
        due_timers: list[Timer],
        batch_time: ReferenceBatchTime,
    ) -> Iterator[Pane]:
        """Call the function once, at an event time."""
        update = self.function(
            KeyContext(
                key,
                key_state.state,
                records,
                due_timers,
                key_state.timers,
                int(key_state.processed_until),
                batch_time.clock,
            )
        )
        key_state.state = update.state
        key_state.timers = sorted(key_state.timers if update.timers is None else update.timers)
        time = max([key_state.max_event_time, *(timer.at for timer in due_timers)])
        yield from (self.build_pane(key, row, time, batch_time) for row in update.rows)

    def take_late_rows(self) -> list[LateRow]:
        """Return and clear the late rows."""
        late_rows, self.late_rows = self.late_rows, []
        return late_rows
