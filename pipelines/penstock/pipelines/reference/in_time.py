"""A function with a memory that is told records in order of event time, with timers where they lie between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from penstock.pipelines.reference.answers import LateRow, Pane
from penstock.pipelines.reference.firing import Moment
from penstock.pipelines.reference.records import BEGINNING, END, Address, Element, Instant
from penstock.pipelines.reference.remembering import Kept, Remembered
from penstock.pipelines.remembering import Call, Read, Timer


@dataclass
class RememberedInTime(Remembered):
    """What is known of all keys, and the records that wait until the watermark has passed them."""

    late: list[LateRow] = field(default_factory=list)

    def fold(self, elements: Sequence[Element], moment: Moment) -> set[Address]:
        """Let records wait; who is behind the watermark is late."""
        for element in elements:
            if element.time < moment.before:
                self.late.append(too_late(element, moment))
            else:
                self.came.setdefault(element.key, []).append(element)
        return {element.address for element in elements if element.time >= moment.before}

    def emit(self, moment: Moment) -> Iterator[Pane]:
        """Tell what the watermark has passed, instant by instant, and the timers before, between and behind."""
        for key in list(dict.fromkeys([*self.keys, *self.came])):
            kept = self.keys.setdefault(key, Kept())
            records = sorted(self.came.pop(key, []), key=lambda each: (each.time, each.address))
            waiting = [each for each in records if each.time >= moment.watermark]
            for at, some in groupby(records[: len(records) - len(waiting)], lambda each: each.time):
                yield from self.pass_to(key, kept, at, moment)
                yield from self.tell(key, kept, list(some), moment)
            ended = moment.watermark == END
            until = max(moment.newest, moment.before) if ended else moment.watermark
            yield from self.pass_to(key, kept, until, moment)
            if ended:
                yield from self.end(key, kept, moment)
            if waiting:
                self.came[key] = waiting
            if kept.state is None and not kept.timers:
                del self.keys[key]

    def tell(
        self, key: tuple[Any, ...], kept: Kept, elements: list[Element], moment: Moment
    ) -> Iterator[Pane]:
        """Ask about the records of an instant."""
        kept.newest = kept.now = elements[0].time
        yield from self.ask(key, kept, [Read(each.time, each.fields) for each in elements], [], moment)

    def pass_to(self, key: tuple[Any, ...], kept: Kept, until: Instant, moment: Moment) -> Iterator[Pane]:
        """Ask for the timers up to an instant, each at its own, and forget the key where its time is over."""
        while kept.timers and kept.timers[0].at <= min(until, self.over_at(kept)):
            yield from self.fire(key, kept, moment)
        if self.over_at(kept) <= until:
            kept.state, kept.timers, kept.newest = None, [], BEGINNING

    def end(self, key: tuple[Any, ...], kept: Kept, moment: Moment) -> Iterator[Pane]:
        """Ask for the timers that are left: what these set comes to nothing, or none would be the last."""
        while kept.timers and kept.timers[0].at <= self.over_at(kept):
            before = kept.timers
            yield from self.fire(key, kept, moment)
            kept.timers = [timer for timer in kept.timers if timer in before and timer.at > kept.now]
        kept.timers = []

    def fire(self, key: tuple[Any, ...], kept: Kept, moment: Moment) -> Iterator[Pane]:
        """Ask for the earliest timers."""
        kept.now = max(kept.now, kept.timers[0].at)
        due = [timer for timer in kept.timers if timer.at <= kept.now]
        kept.timers = [timer for timer in kept.timers if timer.at > kept.now]
        yield from self.ask(key, kept, [], due, moment)

    def ask(
        self, key: tuple[Any, ...], kept: Kept, records: list[Read], due: list[Timer], moment: Moment
    ) -> Iterator[Pane]:
        """Ask once, at an instant of event time."""
        answer = self.function(Call(key, kept.state, records, due, kept.timers, int(kept.now), moment.clock))
        kept.state = answer.state
        kept.timers = sorted(kept.timers if answer.timers is None else answer.timers)
        time = max([kept.newest, *(timer.at for timer in due)])
        yield from (self.pane(key, row, time, moment) for row in answer.rows)

    def missed(self) -> list[LateRow]:
        """Return what came too late, and forget that."""
        late, self.late = self.late, []
        return late


def too_late(element: Element, moment: Moment) -> LateRow:
    """Return the row of a record behind the watermark: its window is its instant."""
    where = (element.time, element.time + 1)
    by = moment.before - (element.time + 1)
    return LateRow(
        element.address, element.key, element.time, *where, "closed", moment.before, by, moment.batch
    )
