"""Step 5 of a batch: whether a window fires, and the rows of its pane."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.reference.answers import Kind, Pane, Replaced, Timing
from penstock.pipelines.reference.joining import says
from penstock.pipelines.reference.records import BEGINNING, Instant
from penstock.pipelines.reference.triggers import Now, Readiness
from penstock.pipelines.reference.values import values
from penstock.pipelines.reference.window import Shown, Window


@dataclass(frozen=True)
class Moment:
    """When a batch is judged. For windows of processing time the watermarks are the clocks."""

    batch: int
    clock: int
    before: Instant
    watermark: Instant
    stream_watermark: Instant
    newest: Instant = BEGINNING
    """The highest event time that was read: where time stands when the input has ended."""

    def now(self, end: Instant) -> Now:
        """Return what a window's trigger is asked about."""
        return Now(end, self.watermark, self.clock)


@dataclass(frozen=True)
class Firing:
    """A window that shows something: with what timing, and whether for the last time."""

    timing: Timing
    final: bool


def judge(stage: Stage, window: Window, moment: Moment) -> Firing | None:
    """Ask the trigger, tell it that it fired, and decide whether a pane is shown."""
    if window.finished:
        return None
    now = moment.now(window.end)
    readiness = window.machine.readiness(now)
    at_end = readiness is Readiness.AT_END and not window.past_end
    # Without news only the end itself fires: what comes later comes from a timer, and its elements were shown.
    on_time = at_end and moment.before < window.end
    fires = readiness is not Readiness.WAITING and (bool(window.unshown) or on_time)
    if fires:
        tell(window, now, at_end)
    closes = moment.watermark >= window.end + stage.lateness
    if not (is_shown(stage, window, fires, on_time) or is_last(stage, window, closes)):
        return None
    timing: Timing = "on_time" if on_time else "late" if now.ended else "early"
    return Firing(timing, closes or window.finished)


def tell(window: Window, now: Now, at_end: bool) -> None:
    """Tell the trigger that the window fired."""
    window.past_end |= at_end
    window.finished = window.machine.fired(now)
    window.finished_at_end = window.finished and at_end


def is_shown(stage: Stage, window: Window, fires: bool, on_time: bool) -> bool:
    """Tell whether a firing shows a pane: an on-time one without news only where that was asked for."""
    silent = on_time and not window.unshown and stage.on_time_pane == "when_changed"
    return fires and not silent


def is_last(stage: Stage, window: Window, closes: bool) -> bool:
    """Tell whether the window shows a pane because it closes, or has finished with nothing new to say."""
    match stage.final_pane:
        case "never":
            return False
        case "when_changed":
            return closes and bool(window.unshown)
        case "always":
            return closes or window.finished


def show(stage: Stage, window: Window, firing: Firing, moment: Moment) -> Iterator[Pane | Replaced]:
    """Yield the rows of the pane, retractions first, and note what was shown."""
    if not window.elements:
        yield from vanish(window, firing, moment)
        return
    elements = window.unshown if stage.accumulation == "discarding" else window.elements
    said = values(stage.aggregates, elements)
    yield from settle(stage, window, firing, moment)
    changed = window.shown is None or differs(stage, window, said)
    if stage.accumulation == "retracting" and window.shown is not None and changed:
        yield retraction(window.key, window.shown, firing, moment)
    needed = changed or stage.accumulation != "retracting" or firing.timing == "on_time" or firing.final
    if needed:
        pane = insertion(window, said, len(elements), firing, moment)
        yield replace(pane, restates=stage.accumulation == "retracting" and not changed)
        window.panes += 1
        window.on_time_panes += firing.timing != "early"
    counts = (window.panes, window.on_time_panes)
    window.shown = Shown(window.start, window.end, said, len(elements), *counts)
    window.unshown = []


def differs(stage: Stage, window: Window, said: Any) -> bool:
    """Tell whether this says something else than what was shown last."""
    assert window.shown is not None
    return bool(says(stage, window.key, said) != says(stage, window.key, window.shown.values))


def vanish(window: Window, firing: Firing, moment: Moment) -> Iterator[Pane]:
    """Take back what was shown of a window whose elements were all taken back: there is no such window."""
    if window.shown is not None:
        yield retraction(window.key, window.shown, firing, moment)
    window.shown = None
    window.unshown = []


def settle(stage: Stage, window: Window, firing: Firing, moment: Moment) -> Iterator[Pane | Replaced]:
    """Take back, or mark as replaced, what the windows that this one swallowed have shown."""
    for shown in window.owed:
        if stage.accumulation == "retracting":
            yield retraction(window.key, shown, firing, moment)
        else:
            yield Replaced(window.key, shown.start, shown.end, window.start, window.end, moment.batch)
    window.owed = ()


def overdue(stage: Stage, window: Window, moment: Moment) -> Iterator[Pane]:
    """Take back what swallowed windows have shown when they would have closed: no later stage could do it after.

    Nothing stands in their place yet, so each row is the last, late word about the swallowed window itself.
    """
    if stage.accumulation != "retracting":
        return
    due = tuple(shown for shown in window.owed if moment.watermark >= shown.end + stage.lateness)
    for shown in due:
        yield retraction(window.key, shown, Firing("late", final=True), moment)
    window.owed = tuple(shown for shown in window.owed if shown not in due)


def insertion(window: Window, said: Any, records: int, firing: Firing, moment: Moment) -> Pane:
    """Return the row that says what the window holds."""
    shown = Shown(window.start, window.end, said, records, window.panes, window.on_time_panes)
    return row(window.key, shown, firing, moment, "insert")


def retraction(key: tuple[Any, ...], shown: Shown, firing: Firing, moment: Moment) -> Pane:
    """Return the row that takes back what a window said last."""
    return row(key, shown, firing, moment, "retract")


def row(key: tuple[Any, ...], shown: Shown, firing: Firing, moment: Moment, kind: Kind) -> Pane:
    """Return a row; `shown` counts the panes before it."""
    return Pane(
        key=key,
        start=shown.start,
        end=shown.end,
        values=shown.values,
        pane=shown.panes,
        timing=firing.timing,
        on_time_index=-1 if firing.timing == "early" else shown.on_time_panes,
        final=firing.final,
        kind=kind,
        records=shown.records,
        batch=moment.batch,
        clock=moment.clock,
        watermark=moment.stream_watermark,
    )
