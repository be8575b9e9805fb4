"""A batch for a function with a memory: each key that has records or due timers is asked, in turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.pipelines.plan.remembering import OUTPUT, Remembering
from penstock.pipelines.plan.source import Column
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.reference.answers import Pane
from penstock.pipelines.reference.firing import Moment
from penstock.pipelines.reference.numbers import canonical
from penstock.pipelines.reference.records import BEGINNING, END, Address, Element, Instant
from penstock.pipelines.remembering import Call, Read, Row, Timer


@dataclass
class Kept:
    """What is known of a key."""

    state: Any = None
    timers: list[Timer] = field(default_factory=list)
    newest: Instant = BEGINNING
    now: Instant = BEGINNING
    """How far it is told, where it is told in order of event time."""


@dataclass
class Remembered:
    """What is known of all keys, and what came for them in this batch."""

    stage: Stage
    window: Remembering
    columns: tuple[Column, ...] = ()
    """The fields of records and their types, which a vectorised function is told."""
    keys: dict[tuple[Any, ...], Kept] = field(default_factory=dict)
    came: dict[tuple[Any, ...], list[Element]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the function; a vectorised one is asked about one key at a time."""
        self.function = self.window.function.resolve()
        if self.window.vectorised:
            from penstock.pipelines.reference.one_by_one import one_by_one  # it brings Arrow

            self.function = one_by_one(self.window, self.stage.key, self.columns)

    def fold(self, elements: Sequence[Element], moment: Moment) -> set[Address]:
        """Take the records; the function is asked when the watermark has moved."""
        for element in elements:
            self.came.setdefault(element.key, []).append(element)
        return {element.address for element in elements}

    def emit(self, moment: Moment) -> Iterator[Pane]:
        """Ask for every key with records or due timers, and forget those of which nothing was heard for long."""
        came, self.came = self.came, {}
        for key in [*self.keys, *(key for key in came if key not in self.keys)]:
            kept = self.keys.setdefault(key, Kept())
            parts = self.parts(kept.newest, came.get(key, []))
            for number, part in enumerate(parts, start=1):
                if part and self.is_over(kept, part[0].time):
                    yield from self.settle(key, kept, [], moment, until=END, last=False)
                    self.keys[key] = kept = Kept()
                yield from self.settle(key, kept, part, moment, moment.watermark, last=number == len(parts))
            if self.is_over(kept, moment.watermark) or (kept.state is None and not kept.timers):
                del self.keys[key]

    def parts(self, newest: Instant, elements: list[Element]) -> list[list[Element]]:
        """Cut what came for a key where it is forgotten, as it is before a record that comes so much later."""
        parts: list[list[Element]] = [[]]
        for element in elements:
            if self.is_over(Kept(newest=newest), element.time):
                parts = [*parts, []] if parts[-1] else parts
            parts[-1].append(element)
            newest = max(newest, element.time)
        return parts

    def is_over(self, kept: Kept, time: Instant) -> bool:
        """Tell whether nothing was heard of a key for as long as it is remembered."""
        at = self.over_at(kept)
        return at != END and at <= time

    def over_at(self, kept: Kept) -> Instant:
        """Return when a key is forgotten."""
        after = self.window.forget_after
        return END if after is None or kept.newest == BEGINNING else kept.newest + after

    def settle(
        self,
        key: tuple[Any, ...],
        kept: Kept,
        elements: list[Element],
        moment: Moment,
        until: Instant,
        *,
        last: bool,
    ) -> Iterator[Pane]:
        """Ask until no timer is due any more: none comes after the key is forgotten."""
        records = [Read(element.time, element.fields) for element in elements]
        kept.newest = max([kept.newest, *(read.time for read in records)])
        until = min(until, self.over_at(kept))
        while records or any(is_due(timer, moment, until) for timer in kept.timers):
            due = [timer for timer in kept.timers if is_due(timer, moment, until)]
            waiting = [timer for timer in kept.timers if not is_due(timer, moment, until)]
            now = (finite(moment.watermark), moment.clock)
            answer = self.function(Call(key, kept.state, records, due, waiting, *now))
            kept.state = answer.state
            kept.timers = sorted(waiting if answer.timers is None else answer.timers)
            times = [kept.newest, *(timer.at for timer in due if timer.clock == "event")]
            yield from (self.pane(key, row, max(times), moment) for row in answer.rows)
            if moment.watermark == END and last and not records:
                # Nothing goes on after the end: a timer that sets itself again would never be the last.
                kept.timers = [timer for timer in kept.timers if not is_due(timer, moment, until)]
            records = []

    def pane(self, key: tuple[Any, ...], row: Row, time: Instant, moment: Moment) -> Pane:
        """Return a row of the function's as what it is: the only pane of a window of one moment."""
        at = time if row.at is None else row.at
        mine = self.window.names_of(row.to)
        fields = {OUTPUT: row.to, **{name: found for name, found in row.fields.items() if name in mine}}
        return Pane(
            key=key,
            start=at,
            end=at + 1,
            values=tuple((column.name, canonical(fields.get(column.name))) for column in self.window.columns),
            pane=0,
            timing="on_time",
            on_time_index=0,
            final=True,
            kind="insert",
            records=1,
            batch=moment.batch,
            clock=moment.clock,
            watermark=moment.stream_watermark,
        )

    def missed(self) -> list[Any]:
        """Return nothing: no record is late for a function."""
        return []


def is_due(timer: Timer, moment: Moment, until: Instant) -> bool:
    """Tell whether a timer's moment has come: of event time, up to the moment that is given."""
    return timer.at <= (until if timer.clock == "event" else moment.clock)


def finite(instant: Instant) -> int:
    """Return the watermark as a function is told it: the ends of time are the ends of 64 bits."""
    return {BEGINNING: -(2**63), END: 2**63 - 1}.get(instant) or int(instant)
