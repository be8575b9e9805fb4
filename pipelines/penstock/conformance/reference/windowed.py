"""Steps 2 to 6 of a batch for time windows: lateness, aggregation, firing, closing."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from penstock.conformance.reference.input_records import Instant, RecordAddress, StageElement
from penstock.conformance.reference.output_rows import LateReason, LateRow, Pane, ReplacedWindow
from penstock.conformance.reference.pane_emission import (
    ReferenceBatchTime,
    emit_pane,
    evaluate_trigger,
    retract_overdue_panes,
)
from penstock.conformance.reference.predicates import matches_predicate
from penstock.conformance.reference.session_merging import build_merged_window, merge_sessions
from penstock.conformance.reference.triggers import ArrivalCounts, create_trigger
from penstock.conformance.reference.window_assignment import find_containing_windows
from penstock.conformance.reference.window_state import ReferenceWindow
from penstock.engine.plan.stages import Stage
from penstock.engine.windows.window import Window

ElementKey: TypeAlias = tuple[Any, ...]
TakenAddresses: TypeAlias = set[RecordAddress]


@dataclass
class ReferenceWindowOperator:
    """All open windows of a stage."""

    stage: Stage
    windows: dict[tuple[ElementKey, Instant, Instant], ReferenceWindow] = field(default_factory=dict)
    late_rows: list[LateRow] = field(default_factory=list)

    def process_elements(
        self, elements: Sequence[StageElement], batch_time: ReferenceBatchTime
    ) -> TakenAddresses:
        """Add elements that are not too late; return the addresses of records that a window accepted."""
        if self.stage.window.merge_gap is not None:
            return self.process_sessions(elements, self.stage.window.merge_gap, batch_time)
        return self.process_assigned(elements, self.stage.window, batch_time)

    def process_assigned(
        self, elements: Sequence[StageElement], window: Window, batch_time: ReferenceBatchTime
    ) -> TakenAddresses:
        """Add elements to windows that depend on event time only."""
        groups: dict[tuple[ElementKey, Instant, Instant], list[StageElement]] = defaultdict(list)
        for element in elements:
            time = batch_time.clock if window.uses_processing_time else element.time
            bounds = assign_element_windows(element, window, time)
            for start, end in bounds:
                groups[element.key, start, end].append(element)
            if not bounds:
                self.record_late([element], time, time, "no_window", batch_time)
        taken: TakenAddresses = set()
        for (key, start, end), members in groups.items():
            taken |= self.add_to_window(key, start, end, members, batch_time)
        return taken

    def add_to_window(
        self,
        key: ElementKey,
        start: Instant,
        end: Instant,
        members: list[StageElement],
        batch_time: ReferenceBatchTime,
    ) -> TakenAddresses:
        """Add elements to one window, unless it is closed or finished."""
        if batch_time.watermark_before >= end + self.stage.lateness:
            return self.record_late(members, start, end, "closed", batch_time)
        window = self.windows.get((key, start, end)) or ReferenceWindow(
            key, start, end, create_trigger(self.stage.trigger)
        )
        return self.add_to_open_window(window, members, batch_time)

    def process_sessions(
        self, elements: Sequence[StageElement], gap: int, batch_time: ReferenceBatchTime
    ) -> TakenAddresses:
        """Merge sessions first, then evaluate the merged windows."""
        all_taken: TakenAddresses = set()
        for key in dict.fromkeys(element.key for element in elements):
            key_elements = [element for element in elements if element.key == key]
            key_windows = [window for window in self.windows.values() if window.key == key]
            for session in merge_sessions(key_windows, key_elements, gap):
                if session.elements and not session.windows:
                    all_taken |= self.add_to_window(
                        key, session.start, session.end, session.elements, batch_time
                    )
                elif session.elements and session.is_new:
                    window = build_merged_window(
                        self.stage, session, batch_time.watermark_before, batch_time.clock
                    )
                    newly_taken = self.add_to_open_window(window, session.elements, batch_time)
                    if newly_taken:
                        self.remove_merged_windows(session.windows)
                    all_taken |= newly_taken
                elif session.elements:
                    all_taken |= self.add_to_open_window(session.windows[0], session.elements, batch_time)
        return all_taken

    def remove_merged_windows(self, windows: Iterable[ReferenceWindow]) -> None:
        """Remove windows that were merged into another."""
        for window in windows:
            del self.windows[window.key, window.start, window.end]

    def add_to_open_window(
        self, window: ReferenceWindow, members: list[StageElement], batch_time: ReferenceBatchTime
    ) -> TakenAddresses:
        """Add elements to an open window; a finished window accepts nothing."""
        if window.is_finished:
            return self.record_late(members, window.start, window.end, "finished", batch_time)
        self.windows[window.key, window.start, window.end] = window
        window.add_elements(members, self.count_arrivals(members, batch_time.clock))
        return {element.address for element in members}

    def count_arrivals(self, members: Sequence[StageElement], clock: int) -> ArrivalCounts:
        """Return the counts of these elements for the trigger."""
        predicates = self.stage.trigger.punctuation
        matching = {
            predicate: sum(matches_predicate(element.fields, predicate) for element in members)
            for predicate in predicates
        }
        return ArrivalCounts(len(members), matching, clock)

    def record_late(
        self,
        members: Iterable[StageElement],
        start: Instant,
        end: Instant,
        reason: LateReason,
        batch_time: ReferenceBatchTime,
    ) -> TakenAddresses:
        """Record elements that a window rejected."""
        missed_by = batch_time.watermark_before - (end + self.stage.lateness) if reason == "closed" else 0
        self.late_rows += [
            LateRow(
                element.address,
                element.key,
                element.time,
                start,
                end,
                reason,
                batch_time.watermark_before,
                missed_by,
                batch_time.batch,
            )
            for element in members
        ]
        return set()

    def emit_panes(self, batch_time: ReferenceBatchTime) -> Iterator[Pane | ReplacedWindow]:
        """Evaluate each trigger once, emit fired panes, and close expired windows."""
        for window_id, window in list(self.windows.items()):
            firing = evaluate_trigger(self.stage, window, batch_time)
            if firing is not None:
                yield from emit_pane(self.stage, window, firing, batch_time)
            yield from retract_overdue_panes(self.stage, window, batch_time)
            if batch_time.watermark >= window.end + self.stage.lateness:
                del self.windows[window_id]

    def take_late_rows(self) -> list[LateRow]:
        """Return and clear the late rows of the batch."""
        late_rows, self.late_rows = self.late_rows, []
        return late_rows


def assign_element_windows(element: StageElement, window: Window, time: int) -> list[tuple[Instant, Instant]]:
    """Return the windows of an element: by its event time, or those of its pane."""
    if window.reuses_upstream_windows:
        assert element.window is not None, "only panes already have windows"
        return [element.window]
    return find_containing_windows(window, time)
