"""What a function with a memory answered key by key, looked at before anything is made of it.

What does not fit what is declared must be found in the batch in which it is answered: a memory of another type
could be read by no later batch once it is decided, and mending the function would help nobody.
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
from penstock.engine.operators.stateful.state_encoding import encode_state
from penstock.engine.operators.strict_conversion import convert_strictly
from penstock.engine.plan.stateful_function import (
    SIDE_OUTPUT_COLUMN,
    UNDECLARED_CLOCK_TIMER,
    StatefulFunction,
)
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, Int64Array

TIMER_CLOCKS = get_args(TimerClock)


class AnswerValidator:
    """What one function may answer. All of its methods raise StatefulFunctionError for what it may not."""

    def __init__(self, window: StatefulFunction) -> None:
        self._window = window
        self._field_names: set[str] = set()

    def check_answer(self, answer: object, key: tuple[Any, ...]) -> KeyUpdate[Any]:
        """The answer for a key, with timers that can be kept."""
        if not isinstance(answer, KeyUpdate):
            raise self._make_error(f"for {key} it gave {type(answer).__name__}, no KeyUpdate")
        for answer_part, items in (("rows", answer.rows), ("timers", answer.timers)):
            # What can be gone through once only would be empty when it is looked at again.
            if items and not isinstance(items, Collection):
                raise self._make_error(f"for {key} its {answer_part} are a {type(items).__name__}, no list")
        for timer in answer.timers or ():
            self._check_timer(timer)
        return answer

    def check_rows(self, rows: Collection[OutputRow]) -> None:
        """Look at the rows of an answer."""
        try:
            self._field_names |= {*chain.from_iterable(row.fields for row in rows)}
        except (AttributeError, TypeError) as problem:
            raise self._make_error(f"its rows are no OutputRow with fields by name ({problem})") from problem

    def refuse_unknown_fields(self) -> None:
        """Refuse fields of rows that are no column of any output: they would get lost in silence."""
        declared = {column.name for column in self._window.columns}
        if self._field_names - declared:
            unknown_names = ", ".join(sorted(map(str, self._field_names - declared)))
            declared_names = ", ".join(sorted(declared - {SIDE_OUTPUT_COLUMN}))
            message = f"its rows have {unknown_names}; declared is {declared_names}"
            raise self._make_error(message)

    def check_times(self, times: Sequence[Any]) -> Int64Array:
        """The event times of rows."""
        time_array = np.array(times) if times else np.empty(0, np.int64)
        if time_array.dtype.kind != "i":
            validity = (
                isinstance(time, int) and MIN_TIMESTAMP_MS <= time <= MAX_TIMESTAMP_MS for time in times
            )
            invalid_time = next(time for time, is_valid in zip(times, validity, strict=True) if not is_valid)
            raise self._make_error(
                f"a row has the event time {invalid_time!r}, which is no whole number of milliseconds"
            )
        return time_array.astype(np.int64, copy=False)

    def make_column(self, name: str, column_type: pa.DataType, rows: Iterable[Mapping[str, Any]]) -> pa.Array:
        """A column of rows, null where a row says nothing of it."""
        try:
            return convert_strictly([fields.get(name) for fields in rows], column_type)
        except ValueError as problem:
            raise self._make_error(f"its rows do not fit the column {name} ({problem})") from problem

    def encode_memory(self, state: Any) -> bytes | None:
        """What it remembers, in bytes that can be read again as what is declared; nothing for nothing."""
        if state is None:
            return None
        try:
            encoded = encode_state(state)
            self._decoder.decode(encoded)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as problem:
            message = f"what it remembers is no {self._window.state.name} that can be kept ({problem})"
            raise self._make_error(message) from problem
        return encoded

    def _check_timer(self, timer: object) -> None:
        if not isinstance(timer, Timer):
            raise self._make_error(f"it gave {type(timer).__name__} among its timers, no Timer")
        is_valid_time = type(timer.at) is int and MIN_TIMESTAMP_MS <= timer.at < -2 * MIN_TIMESTAMP_MS
        if not (is_valid_time and timer.clock in TIMER_CLOCKS and isinstance(timer.name, str)):
            message = f"it set {timer!r}: at is a whole number of milliseconds, clock is event or processing"
            raise self._make_error(message)
        if timer.clock == "processing" and not self._window.clock:
            raise self._make_error(UNDECLARED_CLOCK_TIMER)

    @cached_property
    def _decoder(self) -> msgspec.msgpack.Decoder[Any]:
        return msgspec.msgpack.Decoder(self._window.state.resolve())

    def _make_error(self, message: str) -> StatefulFunctionError:
        return StatefulFunctionError(self._window.function.name, message)
