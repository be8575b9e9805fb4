"""What is known of the keys of a function with a memory: as the state had it, as it is after the calls."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from penstock.pipelines.fold.given import Given
from penstock.pipelines.fold.keyed import KeysInHand
from penstock.pipelines.fold.packing import packed
from penstock.pipelines.fold.rows import Rows, numpy_column
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.remembering import Timer
from penstock.pipelines.state.columns import BEFORE_ALL, Ints, Mask

NO_TIMERS = packed(())


@dataclass
class Known:
    """What is known of a key, before its call and after it."""

    state: Any = None
    timers: tuple[Timer, ...] = ()
    newest: int = BEFORE_ALL
    times: list[int] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)


def opened(window: Remembering, hand: KeysInHand) -> Iterator[Known]:
    """What the state has of each key in hand, one after the other; of new ones it has nothing."""
    row = np.full(len(hand), -1, np.int64)
    row[hand.key_of_known] = np.arange(hand.known.num_rows)
    memories, waiting = (hand.known.column(name).to_pylist() for name in ("memory", "timers"))
    newest = numpy_column(hand.known.column("newest")).tolist()
    memory = msgspec.msgpack.Decoder(window.state.resolve())
    timers = msgspec.msgpack.Decoder(tuple[Timer, ...])
    for at in row.tolist():
        if at < 0:
            yield Known()
            continue
        state = None if memories[at] is None else memory.decode(memories[at])
        yield Known(state, () if waiting[at] == NO_TIMERS else timers.decode(waiting[at]), newest[at])


@dataclass
class Settled:
    """What became of keys, column by column.

    Nothing else stays of a key after its call: with many keys the collector of garbage would go through all of what
    stays again and again, which took a third of the time.
    """

    given: Given
    memory: list[bytes | None] = field(default_factory=list)
    timers: list[bytes] = field(default_factory=list)
    newest: list[int] = field(default_factory=list)
    event: list[int] = field(default_factory=list)
    clock: list[int] = field(default_factory=list)
    gone: list[bool] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, one: Known, event: int, clock: int) -> None:
        """Take a key that was called for; at `event` and at `clock` something is to be done about it."""
        self.memory.append(self.given.memory(one.state))
        self.timers.append(packed(one.timers) if one.timers else NO_TIMERS)
        self.newest.append(one.newest)
        self.event.append(event)
        self.clock.append(clock)
        self.gone.append(one.state is None and not one.timers)
        self.counts.append(len(one.rows))
        self.times += one.times
        self.rows += one.rows

    @property
    def due(self) -> tuple[Ints, Ints]:
        """The watermark and the clock at which something is to be done about each key."""
        return np.array(self.event, np.int64), np.array(self.clock, np.int64)

    @property
    def dropped(self) -> Mask:
        """The keys of which nothing is left."""
        return np.array(self.gone, bool)

    def kept(self) -> Rows:
        """What the state is to have."""
        count = len(self.memory)
        columns: Mapping[str, list[Any]] = {"memory": self.memory, "timers": self.timers}
        made = {name: np.fromiter(values, dtype=object, count=count) for name, values in columns.items()}
        return Rows({**made, "newest": np.array(self.newest, np.int64)}, count)
