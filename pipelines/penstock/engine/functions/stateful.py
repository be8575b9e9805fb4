"""What a function with a memory is given and what it answers: state of one's own for each key.

    def spikes(call: KeyContext[Trend]) -> KeyUpdate[Trend]:
        trend = call.state or Trend()
        ...
        return KeyUpdate(trend, rows=[OutputRow({"above": 7.0})])

It is called once for each key that got records in a batch, or of which a timer is due, and never for others. After
a crash it may be called again with the very same call, and only the answer that was decided counts: so it must
answer by what it is given alone, and do nothing outside. Sending a mail from it would send two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

State = TypeVar("State")
TimerClock = Literal["event", "processing"]


# There is one of these two for each record and each row: a struct is made in a fifth of the time of a dataclass.
class KeyedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of the key: its event time, and its fields after the stage's steps."""

    time: int
    fields: Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Timer:
    """A moment at which the key is called: when the watermark reaches `at`, or the batch clock; milliseconds."""

    at: int
    clock: TimerClock = "event"
    name: str = ""


@dataclass(frozen=True)
class KeyContext(Generic[State]):
    """All that a function may know: the key, what it remembers, and what came, in the order of arrival.

    `due_timers` are gone, unless the answer sets them again. `pending_timers` are the others.
    """

    key: tuple[Any, ...]
    state: State | None
    records: Sequence[KeyedRecord]
    due_timers: Sequence[Timer]
    pending_timers: Sequence[Timer]
    watermark: int
    batch_clock: int


class OutputRow(msgspec.Struct, frozen=True, gc=False):
    """A row of the result; `at` is its event time, without it that of the newest record or timer of the call.

    `output` names another output that is declared, in the place of the function's own rows.
    """

    fields: Mapping[str, Any]
    at: int | None = None
    output: str | None = None


@dataclass(frozen=True)
class KeyUpdate(Generic[State]):
    """What becomes of the key: its state from now on (None forgets it), rows, and timers.

    Without `timers` those that wait go on waiting; with them, these stand in their place.
    """

    state: State | None
    rows: Sequence[OutputRow] = ()
    timers: Sequence[Timer] | None = None
