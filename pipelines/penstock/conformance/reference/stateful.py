"""Runs a stateful function: one call per key that has records or due timers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.conformance.reference.input_records import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Instant,
    RecordAddress,
    StageElement,
)
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.conformance.reference.output_rows import Pane
from penstock.conformance.reference.pane_emission import ReferenceBatchTime
from penstock.conformance.reference.single_rows import build_only_pane
from penstock.engine.functions.stateful import KeyContext, KeyedRecord, OutputRow, Timer
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import SIDE_OUTPUT_COLUMN, StatefulFunction


@dataclass
class ReferenceKeyState:
    """The state of a key."""

    state: Any = None
    timers: list[Timer] = field(default_factory=list)
    max_event_time: Instant = MIN_TIMESTAMP
    processed_until: Instant = MIN_TIMESTAMP
    """The event time up to which it is processed, in event-time order."""


@dataclass
class ReferenceStatefulOperator:
    """The state of all keys, and their new records in this batch."""

    stage: Stage
    window: StatefulFunction
    columns: tuple[Column, ...] = ()
    """The fields of records and their types, for vectorized functions."""
    key_states: dict[tuple[Any, ...], ReferenceKeyState] = field(default_factory=dict)
    elements_by_key: dict[tuple[Any, ...], list[StageElement]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Load the function; a vectorized one is called for one key at a time."""
        self.function = self.window.function.resolve()
        if self.window.vectorized:
            from penstock.conformance.reference.vectorized_adapter import adapt_vectorized  # imports Arrow

            self.function = adapt_vectorized(self.window, self.stage.key, self.columns)

    def process_elements(
        self, elements: Sequence[StageElement], batch_time: ReferenceBatchTime
    ) -> set[RecordAddress]:
        """Collect the records; the function runs after the watermark has advanced."""
        for element in elements:
            self.elements_by_key.setdefault(element.key, []).append(element)
        return {element.address for element in elements}

    def emit_panes(self, batch_time: ReferenceBatchTime) -> Iterator[Pane]:
        """Call the function for every key with records or due timers, and expire silent keys."""
        arrived, self.elements_by_key = self.elements_by_key, {}
        for key in [*self.key_states, *(key for key in arrived if key not in self.key_states)]:
            key_state = self.key_states.setdefault(key, ReferenceKeyState())
            parts = self.split_at_expiry(key_state.max_event_time, arrived.get(key, []))
            for number, part_elements in enumerate(parts, start=1):
                if part_elements and self.is_expired(key_state, part_elements[0].time):
                    yield from self.call_until_settled(
                        key, key_state, [], batch_time, until=MAX_TIMESTAMP, is_last_part=False
                    )
                    self.key_states[key] = key_state = ReferenceKeyState()
                yield from self.call_until_settled(
                    key,
                    key_state,
                    part_elements,
                    batch_time,
                    batch_time.watermark,
                    is_last_part=number == len(parts),
                )
            if self.is_expired(key_state, batch_time.watermark) or (
                key_state.state is None and not key_state.timers
            ):
                del self.key_states[key]

    def split_at_expiry(
        self, max_event_time: Instant, elements: list[StageElement]
    ) -> list[list[StageElement]]:
        """Split the records of a key where its state expires between them."""
        parts: list[list[StageElement]] = [[]]
        for element in elements:
            if self.is_expired(ReferenceKeyState(max_event_time=max_event_time), element.time):
                parts = [*parts, []] if parts[-1] else parts
            parts[-1].append(element)
            max_event_time = max(max_event_time, element.time)
        return parts

    def is_expired(self, key_state: ReferenceKeyState, time: Instant) -> bool:
        """Tell whether the state of a key has expired."""
        expiry = self.expires_at(key_state)
        return expiry != MAX_TIMESTAMP and expiry <= time

    def expires_at(self, key_state: ReferenceKeyState) -> Instant:
        """Return the time at which the state of a key expires."""
        forget_after = self.window.forget_after
        return (
            MAX_TIMESTAMP
            if forget_after is None or key_state.max_event_time == MIN_TIMESTAMP
            else key_state.max_event_time + forget_after
        )

    def call_until_settled(
        self,
        key: tuple[Any, ...],
        key_state: ReferenceKeyState,
        elements: list[StageElement],
        batch_time: ReferenceBatchTime,
        until: Instant,
        *,
        is_last_part: bool,
    ) -> Iterator[Pane]:
        """Call the function until no timer is due; timers after expiry never fire."""
        records = [KeyedRecord(element.time, element.fields) for element in elements]
        key_state.max_event_time = max([key_state.max_event_time, *(record.time for record in records)])
        until = min(until, self.expires_at(key_state))
        while records or any(is_due(timer, batch_time, until) for timer in key_state.timers):
            due_timers = [timer for timer in key_state.timers if is_due(timer, batch_time, until)]
            waiting_timers = [timer for timer in key_state.timers if not is_due(timer, batch_time, until)]
            time_arguments = (to_finite_ms(batch_time.watermark), batch_time.clock)
            update = self.function(
                KeyContext(key, key_state.state, records, due_timers, waiting_timers, *time_arguments)
            )
            key_state.state = update.state
            key_state.timers = sorted(waiting_timers if update.timers is None else update.timers)
            times = [key_state.max_event_time, *(timer.at for timer in due_timers if timer.clock == "event")]
            yield from (self.build_pane(key, row, max(times), batch_time) for row in update.rows)
            if batch_time.watermark == MAX_TIMESTAMP and is_last_part and not records:
                # At the end of the input, new timers are dropped; a timer that sets itself again would never stop.
                key_state.timers = [
                    timer for timer in key_state.timers if not is_due(timer, batch_time, until)
                ]
            records = []

    def build_pane(
        self, key: tuple[Any, ...], row: OutputRow, time: Instant, batch_time: ReferenceBatchTime
    ) -> Pane:
        """Return a row of the function as the only pane of a zero-length window."""
        event_time = time if row.at is None else row.at
        output_columns = self.window.output_column_names(row.output)
        fields = {
            SIDE_OUTPUT_COLUMN: row.output,
            **{name: value for name, value in row.fields.items() if name in output_columns},
        }
        values = ((column.name, canonicalize(fields.get(column.name))) for column in self.window.columns)
        return build_only_pane(key, (event_time, event_time + 1), values, batch_time)

    def take_late_rows(self) -> list[Any]:
        """Return nothing: no record is late for a stateful function."""
        return []


def is_due(timer: Timer, batch_time: ReferenceBatchTime, until: Instant) -> bool:
    """Tell whether a timer is due; an event-time timer, at or before the given time."""
    return timer.at <= (until if timer.clock == "event" else batch_time.clock)


def to_finite_ms(instant: Instant) -> int:
    """Return the watermark as the function sees it: infinity becomes the limit of 64 bits."""
    return {MIN_TIMESTAMP: -(2**63), MAX_TIMESTAMP: 2**63 - 1}.get(instant) or int(instant)
