"""Validate what a stateful function returns for a key, before it is used.

An invalid result must fail the batch that produces it. Once committed, a state of another type could not be
read by any later batch, and fixing the function would not help.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, get_args

import msgspec
import numpy as np
import pyarrow as pa

from penstock.engine.errors import StatefulFunctionError
from penstock.engine.functions.stateful import KeyUpdate, OutputRow, Timer, TimerClock
from penstock.engine.operators.stateful.state_encoding import encode_state as encode_value
from penstock.engine.operators.strict_conversion import convert_strictly
from penstock.engine.plan.stateful_function import (
    SIDE_OUTPUT_COLUMN,
    UNDECLARED_CLOCK_TIMER,
    StatefulFunction,
)
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, Int64Array

TIMER_CLOCKS = get_args(TimerClock)


class UpdateValidator:
    """Checks the results of one function. All methods raise StatefulFunctionError for invalid results."""

    def __init__(self, window: StatefulFunction) -> None:
        self._window = window
        self._field_names: set[str] = set()

    def check_update(self, update: object, key: tuple[Any, ...]) -> KeyUpdate[Any]:
        """Return the update for a key, after checking its types and timers."""
        if not isinstance(update, KeyUpdate):
            raise self._make_error(f"for key {key} it returned {type(update).__name__}, not a KeyUpdate")
        for part, items in (("rows", update.rows), ("timers", update.timers)):
            # A one-shot iterator would be empty when it is read again.
            if items and not isinstance(items, Collection):
                raise self._make_error(f"for key {key} its {part} are a {type(items).__name__}, not a list")
        for timer in update.timers or ():
            self._check_timer(timer)
        return update

    def check_rows(self, rows: Collection[OutputRow]) -> None:
        """Check the rows of an update."""
        try:
            self._field_names |= {*chain.from_iterable(row.fields for row in rows)}
        except (AttributeError, TypeError) as error:
            raise self._make_error(f"its rows are not OutputRow with fields by name ({error})") from error

    def refuse_unknown_fields(self) -> None:
        """Raise for row fields that no output declares. They would be lost silently."""
        declared = {column.name for column in self._window.columns}
        if self._field_names - declared:
            unknown_names = ", ".join(sorted(map(str, self._field_names - declared)))
            declared_names = ", ".join(sorted(declared - {SIDE_OUTPUT_COLUMN}))
            message = f"its rows have the undeclared fields {unknown_names}; declared: {declared_names}"
            raise self._make_error(message)

    def check_times(self, times: Sequence[Any]) -> Int64Array:
        """Return the event times of rows."""
        time_array = np.array(times) if times else np.empty(0, np.int64)
        if time_array.dtype.kind != "i":
            validity = (
                isinstance(time, int) and MIN_TIMESTAMP_MS <= time <= MAX_TIMESTAMP_MS for time in times
            )
            invalid_time = next(time for time, is_valid in zip(times, validity, strict=True) if not is_valid)
            raise self._make_error(
                f"a row has the event time {invalid_time!r}, which is not a whole number of milliseconds"
            )
        return time_array.astype(np.int64, copy=False)

    def make_column(self, name: str, column_type: pa.DataType, rows: Iterable[Mapping[str, Any]]) -> pa.Array:
        """Return a column of the rows, null where a row lacks the field."""
        try:
            return convert_strictly([fields.get(name) for fields in rows], column_type)
        except ValueError as error:
            raise self._make_error(f"its rows do not fit the column {name} ({error})") from error

    def encode_state(self, state: Any) -> bytes | None:
        """Return the encoded state, after checking that it decodes as the declared type; None for no state."""
        if state is None:
            return None
        try:
            encoded = encode_value(state)
            self._decoder.decode(encoded)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
            message = f"its state is not a {self._window.state.name} that can be stored ({error})"
            raise self._make_error(message) from error
        return encoded

    def _check_timer(self, timer: object) -> None:
        if not isinstance(timer, Timer):
            raise self._make_error(f"its timers contain {type(timer).__name__}, not only Timer")
        is_valid_time = type(timer.at) is int and MIN_TIMESTAMP_MS <= timer.at < -2 * MIN_TIMESTAMP_MS
        if not (is_valid_time and timer.clock in TIMER_CLOCKS and isinstance(timer.name, str)):
            message = f"it set {timer!r}: at must be whole milliseconds, clock must be event or processing"
            raise self._make_error(message)
        if timer.clock == "processing" and not self._window.clock:
            raise self._make_error(UNDECLARED_CLOCK_TIMER)

    @cached_property
    def _decoder(self) -> msgspec.msgpack.Decoder[Any]:
        return msgspec.msgpack.Decoder(self._window.state.resolve())

    def _make_error(self, message: str) -> StatefulFunctionError:
        return StatefulFunctionError(self._window.function.name, message)
