"""Arguments and results of stateful functions, which keep user-defined state for each key.

    def detect_spikes(context: KeyContext[Trend]) -> KeyUpdate[Trend]:
        trend = context.state or Trend()
        ...
        return KeyUpdate(trend, rows=[OutputRow({"above": 7.0})])

A batch calls the function once for each key that has records or a due timer. After a crash it may be called again
with the same context, and only the committed result counts. So the function must be deterministic and free of side
effects: an e-mail from it could be sent twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

State = TypeVar("State")
TimerClock = Literal["event", "processing"]


# One object per record or row: creating a struct takes a fifth of the time of a dataclass.
class KeyedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of a key: its event time, and its fields after the steps of the stage."""

    time: int
    fields: Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Timer:
    """A timer of a key: it fires when the watermark or the batch clock reaches `at`, in milliseconds."""

    at: int
    clock: TimerClock = "event"
    name: str = ""


@dataclass(frozen=True)
class KeyContext(Generic[State]):
    """The input of a call: a key, its state, and its new records in arrival order.

    `due_timers` are deleted unless the result sets them again. `pending_timers` are all other timers of the key.
    """

    key: tuple[Any, ...]
    state: State | None
    records: Sequence[KeyedRecord]
    due_timers: Sequence[Timer]
    pending_timers: Sequence[Timer]
    watermark: int
    batch_clock: int


class OutputRow(msgspec.Struct, frozen=True, gc=False):
    """A row of the result. `at` is its event time; the default is that of the newest record or timer of the call.

    `output` names a declared side output; the default is the main output.
    """

    fields: Mapping[str, Any]
    at: int | None = None
    output: str | None = None


@dataclass(frozen=True)
class KeyUpdate(Generic[State]):
    """The result of a call: the new state of the key (None deletes it), rows, and timers.

    `timers` replaces all pending timers; None keeps them.
    """

    state: State | None
    rows: Sequence[OutputRow] = ()
    timers: Sequence[Timer] | None = None
