"""Merges sessions: which windows and elements of a key belong together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.conformance.reference.input_records import Instant, StageElement
from penstock.conformance.reference.triggers import MergedTrigger, ReferenceTriggerContext, create_trigger
from penstock.conformance.reference.window_state import EmittedPane, ReferenceWindow
from penstock.engine.plan.stages import Stage


@dataclass
class MergedSession:
    """Windows and new elements of one key that overlap or touch."""

    start: Instant
    end: Instant
    windows: list[ReferenceWindow] = field(default_factory=list)
    elements: list[StageElement] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """Tell whether it differs from the only window that it contains."""
        return [(window.start, window.end) for window in self.windows] != [(self.start, self.end)]


def merge_sessions(
    windows: Iterable[ReferenceWindow], elements: Iterable[StageElement], gap: int
) -> list[MergedSession]:
    """Merge windows and elements that overlap or touch; an element at t covers [t, t + gap)."""
    intervals = [MergedSession(window.start, window.end, windows=[window]) for window in windows]
    intervals += [MergedSession(element.time, element.time + gap, elements=[element]) for element in elements]
    sessions: list[MergedSession] = []
    for interval in sorted(intervals, key=lambda interval: interval.start):
        if sessions and interval.start <= sessions[-1].end:
            last = sessions[-1]
            last.end = max(last.end, interval.end)
            last.windows += interval.windows
            last.elements += interval.elements
        else:
            sessions.append(interval)
    return sessions


def build_merged_window(
    stage: Stage, session: MergedSession, watermark_before: Instant, clock: int
) -> ReferenceWindow:
    """Return the merged window, before its new elements are added.

    A finished window stays finished, unless it finished at its end and the merged end is still ahead. The merged
    window is finished if all its parts are.
    """
    context = ReferenceTriggerContext(session.end, watermark_before, clock)
    merged_windows = session.windows
    key = merged_windows[0].key
    unfinished = [window for window in merged_windows if not window.is_finished]
    window = ReferenceWindow(key, session.start, session.end, create_trigger(stage.trigger))
    window.trigger.on_merge(
        [MergedTrigger(merged_window.trigger, bool(merged_window.pending)) for merged_window in unfinished],
        context,
    ) if unfinished else None
    window.elements = [element for merged_window in merged_windows for element in merged_window.elements]
    window.pending = [element for merged_window in merged_windows for element in merged_window.pending]
    window.unretracted_panes = tuple(
        emitted for merged_window in merged_windows for emitted in unretracted_panes_of(merged_window)
    )
    window.is_past_end = context.is_past_end
    window.is_finished = all(
        merged_window.is_finished and (context.is_past_end or not merged_window.is_finished_at_end)
        for merged_window in merged_windows
    )
    return window


def unretracted_panes_of(window: ReferenceWindow) -> Sequence[EmittedPane]:
    """Return the panes of a merged window that must be retracted or marked as replaced."""
    return (
        (*window.unretracted_panes, window.last_emitted)
        if window.last_emitted is not None
        else window.unretracted_panes
    )
