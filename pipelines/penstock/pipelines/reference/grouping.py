"""Steps 2 to 6 of a batch for windows of time: lateness, folding, firing, closing."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.triggers import punctuations
from penstock.pipelines.plan.windows import (
    Calendar,
    Fixed,
    Global,
    SameWindows,
    Sessions,
    Sliding,
    by_processing_time,
)
from penstock.pipelines.reference.answers import LateReason, LateRow, Pane, Replaced
from penstock.pipelines.reference.assignment import windows_of
from penstock.pipelines.reference.composites import machine_for
from penstock.pipelines.reference.conditions import meets
from penstock.pipelines.reference.firing import Moment, judge, overdue, show
from penstock.pipelines.reference.records import Address, Element, Instant
from penstock.pipelines.reference.sessions import merged, sessions_of
from penstock.pipelines.reference.triggers import Came
from penstock.pipelines.reference.window import Window

Assigned: TypeAlias = Fixed | Sliding | Calendar | Global | SameWindows
Key: TypeAlias = tuple[Any, ...]
Taken: TypeAlias = set[Address]


@dataclass
class Grouping:
    """All open windows of a stage."""

    stage: Stage
    windows: dict[tuple[Key, Instant, Instant], Window] = field(default_factory=dict)
    late: list[LateRow] = field(default_factory=list)

    def fold(self, elements: Sequence[Element], moment: Moment) -> Taken:
        """Fold what is not too late; return the addresses of records that at least one window took."""
        match self.stage.window:
            case Sessions(gap):
                return self.fold_sessions(elements, gap, moment)
            case Fixed() | Sliding() | Calendar() | Global() | SameWindows() as window:
                return self.fold_assigned(elements, window, moment)
            case _:
                raise TypeError(f"{self.stage.window} is no window of time")

    def fold_assigned(self, elements: Sequence[Element], window: Assigned, moment: Moment) -> Taken:
        """Fold elements into the windows that their time alone decides."""
        groups: dict[tuple[Key, Instant, Instant], list[Element]] = defaultdict(list)
        for element in elements:
            time = moment.clock if by_processing_time(window) else element.time
            places = places_of(element, window, time)
            for start, end in places:
                groups[element.key, start, end].append(element)
            if not places:
                self.miss([element], time, time, "no_window", moment)
        took: Taken = set()
        for (key, start, end), members in groups.items():
            took |= self.fold_window(key, start, end, members, moment)
        return took

    def fold_window(
        self, key: Key, start: Instant, end: Instant, members: list[Element], moment: Moment
    ) -> Taken:
        """Fold elements into one window, unless it is closed or finished."""
        if moment.before >= end + self.stage.lateness:
            return self.miss(members, start, end, "closed", moment)
        window = self.windows.get((key, start, end)) or Window(
            key, start, end, machine_for(self.stage.trigger)
        )
        return self.take(window, members, moment)

    def fold_sessions(self, elements: Sequence[Element], gap: int, moment: Moment) -> Taken:
        """Merge first, then judge the merged windows."""
        took: Taken = set()
        for key in dict.fromkeys(element.key for element in elements):
            mine = [element for element in elements if element.key == key]
            old = [window for window in self.windows.values() if window.key == key]
            for session in sessions_of(old, mine, gap):
                if session.elements and not session.windows:
                    took |= self.fold_window(key, session.start, session.end, session.elements, moment)
                elif session.elements and session.is_new:
                    window = merged(self.stage, session, moment.before, moment.clock)
                    taken = self.take(window, session.elements, moment)
                    if taken:
                        self.swallow(session.windows)
                    took |= taken
                elif session.elements:
                    took |= self.take(session.windows[0], session.elements, moment)
        return took

    def swallow(self, windows: Iterable[Window]) -> None:
        """Forget windows that have become part of another."""
        for window in windows:
            del self.windows[window.key, window.start, window.end]

    def take(self, window: Window, members: list[Element], moment: Moment) -> Taken:
        """Fold elements into a window that is not closed; one that has finished takes nothing."""
        if window.finished:
            return self.miss(members, window.start, window.end, "finished", moment)
        self.windows[window.key, window.start, window.end] = window
        window.take(members, self.came(members, moment.clock))
        return {element.address for element in members}

    def came(self, members: Sequence[Element], clock: int) -> Came:
        """Return what the trigger is told of these elements."""
        looked_for = punctuations(self.stage.trigger)
        matching = {what: sum(meets(element.fields, what) for element in members) for what in looked_for}
        return Came(len(members), matching, clock)

    def miss(
        self, members: Iterable[Element], start: Instant, end: Instant, reason: LateReason, moment: Moment
    ) -> Taken:
        """Write down what a window did not take; nobody took it here."""
        by = moment.before - (end + self.stage.lateness) if reason == "closed" else 0
        self.late += [
            LateRow(e.address, e.key, e.time, start, end, reason, moment.before, by, moment.batch)
            for e in members
        ]
        return set()

    def emit(self, moment: Moment) -> Iterator[Pane | Replaced]:
        """Judge each window's trigger once, show what fires, and close what is past its lateness."""
        for place, window in list(self.windows.items()):
            firing = judge(self.stage, window, moment)
            if firing is not None:
                yield from show(self.stage, window, firing, moment)
            yield from overdue(self.stage, window, moment)
            if moment.watermark >= window.end + self.stage.lateness:
                del self.windows[place]

    def missed(self) -> list[LateRow]:
        """Return the late rows of the batch, and forget them."""
        late, self.late = self.late, []
        return late


def places_of(element: Element, window: Assigned, time: int) -> list[tuple[Instant, Instant]]:
    """Return the windows that an element lies in: by its time, or as those of the pane that it comes from."""
    if isinstance(window, SameWindows):
        assert element.window is not None, "only panes have windows to go on with"
        return [element.window]
    return windows_of(window, time)
