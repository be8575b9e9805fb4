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

from penstock.pipelines.errors import RememberingError
from penstock.pipelines.fold.fitting import fitting
from penstock.pipelines.fold.packing import packed
from penstock.pipelines.plan.remembering import OUTPUT, UNSAID, Remembering
from penstock.pipelines.remembering import Answer, Clock, Row, Timer
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER, Ints

CLOCKS = get_args(Clock)


class Given:
    """What one function may answer. All of its methods raise RememberingError for what it may not."""

    def __init__(self, window: Remembering) -> None:
        self._window = window
        self._named: set[str] = set()

    def answer(self, found: object, key: tuple[Any, ...]) -> Answer[Any]:
        """The answer for a key, with timers that can be kept."""
        if not isinstance(found, Answer):
            raise self._wrong(f"for {key} it gave {type(found).__name__}, no Answer")
        for what, several in (("rows", found.rows), ("timers", found.timers)):
            # What can be gone through once only would be empty when it is looked at again.
            if several and not isinstance(several, Collection):
                raise self._wrong(f"for {key} its {what} are a {type(several).__name__}, no list")
        for timer in found.timers or ():
            self._refuse_timer(timer)
        return found

    def rows(self, rows: Collection[Row]) -> None:
        """Look at the rows of an answer."""
        try:
            self._named |= {*chain.from_iterable(row.fields for row in rows)}
        except (AttributeError, TypeError) as problem:
            raise self._wrong(f"its rows are no Row with fields by name ({problem})") from problem

    def refuse_unknown(self) -> None:
        """Refuse fields of rows that are no column of any output: they would get lost in silence."""
        known = {column.name for column in self._window.columns}
        if self._named - known:
            others = ", ".join(sorted(map(str, self._named - known)))
            found = f"its rows have {others}; declared is {', '.join(sorted(known - {OUTPUT}))}"
            raise self._wrong(found)

    def instants(self, times: Sequence[Any]) -> Ints:
        """The event times of rows."""
        found = np.array(times) if times else np.empty(0, np.int64)
        if found.dtype.kind != "i":
            fits = (isinstance(at, int) and BEFORE_ALL <= at <= NEVER for at in times)
            wrong = next(at for at, good in zip(times, fits, strict=True) if not good)
            raise self._wrong(f"a row has the event time {wrong!r}, which is no whole number of milliseconds")
        return found.astype(np.int64, copy=False)

    def column(self, name: str, kind: pa.DataType, rows: Iterable[Mapping[str, Any]]) -> pa.Array:
        """A column of rows, null where a row says nothing of it."""
        try:
            return fitting([fields.get(name) for fields in rows], kind)
        except ValueError as problem:
            raise self._wrong(f"its rows do not fit the column {name} ({problem})") from problem

    def memory(self, state: Any) -> bytes | None:
        """What it remembers, in bytes that can be read again as what is declared; nothing for nothing."""
        if state is None:
            return None
        try:
            told = packed(state)
            self._decoder.decode(told)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as problem:
            found = f"what it remembers is no {self._window.state.name} that can be kept ({problem})"
            raise self._wrong(found) from problem
        return told

    def _refuse_timer(self, timer: object) -> None:
        if not isinstance(timer, Timer):
            raise self._wrong(f"it gave {type(timer).__name__} among its timers, no Timer")
        fits = type(timer.at) is int and BEFORE_ALL <= timer.at < -2 * BEFORE_ALL
        if not (fits and timer.clock in CLOCKS and isinstance(timer.name, str)):
            found = f"it set {timer!r}: at is a whole number of milliseconds, clock is event or processing"
            raise self._wrong(found)
        if timer.clock == "processing" and not self._window.clock:
            raise self._wrong(UNSAID)

    @cached_property
    def _decoder(self) -> msgspec.msgpack.Decoder[Any]:
        return msgspec.msgpack.Decoder(self._window.state.resolve())

    def _wrong(self, found: str) -> RememberingError:
        return RememberingError(self._window.function.name, found)
