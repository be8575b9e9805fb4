"""Sessions: which windows and elements of a key belong together, and what merged windows become."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.reference.composites import machine_for
from penstock.pipelines.reference.records import Element, Instant
from penstock.pipelines.reference.triggers import Now, Part
from penstock.pipelines.reference.window import Shown, Window


@dataclass
class Session:
    """Windows and new elements of one key that overlap or touch."""

    start: Instant
    end: Instant
    windows: list[Window] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """Tell whether it is another window than the one it began from."""
        return [(window.start, window.end) for window in self.windows] != [(self.start, self.end)]


def sessions_of(windows: Iterable[Window], elements: Iterable[Element], gap: int) -> list[Session]:
    """Join what overlaps or touches: an element at t stands for [t, t + gap)."""
    pieces = [Session(window.start, window.end, windows=[window]) for window in windows]
    pieces += [Session(element.time, element.time + gap, elements=[element]) for element in elements]
    joined: list[Session] = []
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if joined and piece.start <= joined[-1].end:
            last = joined[-1]
            last.end = max(last.end, piece.end)
            last.windows += piece.windows
            last.elements += piece.elements
        else:
            joined.append(piece)
    return joined


def merged(stage: Stage, session: Session, before: Instant, clock: int) -> Window:
    """Return the window that a session's windows become, before its new elements are folded.

    A window that finished stays so, unless it finished at its end and the merged end is still to come; the
    merged one has finished when all have.
    """
    now = Now(session.end, before, clock)
    old = session.windows
    key = old[0].key
    live = [window for window in old if not window.finished]
    window = Window(key, session.start, session.end, machine_for(stage.trigger))
    window.machine.merge([Part(part.machine, bool(part.unshown)) for part in live], now) if live else None
    window.elements = [element for part in old for element in part.elements]
    window.unshown = [element for part in old for element in part.unshown]
    window.owed = tuple(shown for part in old for shown in debts(part))
    window.past_end = now.ended
    window.finished = all(part.finished and (now.ended or not part.finished_at_end) for part in old)
    return window


def debts(window: Window) -> Sequence[Shown]:
    """Return what a swallowed window leaves to be taken back or marked."""
    return (*window.owed, window.shown) if window.shown is not None else window.owed
