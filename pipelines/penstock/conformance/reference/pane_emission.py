"""Step 5 of a batch: whether a window fires, and the rows of its pane."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from penstock.conformance.reference.aggregates import compute_columns
from penstock.conformance.reference.input_records import MIN_TIMESTAMP, Instant
from penstock.conformance.reference.join_rows import pane_content
from penstock.conformance.reference.output_rows import Pane, PaneTiming, ReplacedWindow, RowKind
from penstock.conformance.reference.triggers import ReferenceTriggerContext, TriggerReadiness
from penstock.conformance.reference.window_state import EmittedPane, ReferenceWindow
from penstock.engine.plan.stages import Stage


@dataclass(frozen=True)
class ReferenceBatchTime:
    """The time of a batch. For processing-time windows, the watermarks are clock times."""

    batch: int
    clock: int
    watermark_before: Instant
    watermark: Instant
    stream_watermark: Instant
    max_event_time: Instant = MIN_TIMESTAMP
    """The highest event time that was read; the current time after the end of the input."""

    def trigger_context(self, end: Instant) -> ReferenceTriggerContext:
        """Return the context of a window's trigger."""
        return ReferenceTriggerContext(end, self.watermark, self.clock)


@dataclass(frozen=True)
class ReferenceFiring:
    """A window that emits a pane: the timing, and whether it is the last pane."""

    timing: PaneTiming
    is_final: bool


def evaluate_trigger(
    stage: Stage, window: ReferenceWindow, batch_time: ReferenceBatchTime
) -> ReferenceFiring | None:
    """Evaluate the trigger, record a firing, and decide whether a pane is emitted."""
    if window.is_finished:
        return None
    context = batch_time.trigger_context(window.end)
    readiness = window.trigger.check_readiness(context)
    is_at_end = readiness is TriggerReadiness.AT_END and not window.is_past_end
    # Without new elements, only the end of the window fires; a later timer has nothing new to emit.
    is_on_time = is_at_end and batch_time.watermark_before < window.end
    is_firing = readiness is not TriggerReadiness.WAITING and (bool(window.pending) or is_on_time)
    if is_firing:
        record_firing(window, context, is_at_end)
    is_closing = batch_time.watermark >= window.end + stage.lateness
    if not (
        is_pane_emitted(stage, window, is_firing, is_on_time)
        or is_final_pane_emitted(stage, window, is_closing)
    ):
        return None
    timing: PaneTiming = "on_time" if is_on_time else "late" if context.is_past_end else "early"
    return ReferenceFiring(timing, is_closing or window.is_finished)


def record_firing(window: ReferenceWindow, context: ReferenceTriggerContext, is_at_end: bool) -> None:
    """Notify the trigger that the window fired."""
    window.is_past_end |= is_at_end
    window.is_finished = window.trigger.on_fire(context)
    window.is_finished_at_end = window.is_finished and is_at_end


def is_pane_emitted(stage: Stage, window: ReferenceWindow, is_firing: bool, is_on_time: bool) -> bool:
    """Tell whether a firing emits a pane; an on-time pane without new elements only if configured."""
    is_silent = is_on_time and not window.pending and stage.on_time_pane == "when_changed"
    return is_firing and not is_silent


def is_final_pane_emitted(stage: Stage, window: ReferenceWindow, is_closing: bool) -> bool:
    """Tell whether the window emits a pane because it closes or has finished."""
    match stage.final_pane:
        case "never":
            return False
        case "when_changed":
            return is_closing and bool(window.pending)
        case "always":
            return is_closing or window.is_finished


def emit_pane(
    stage: Stage, window: ReferenceWindow, firing: ReferenceFiring, batch_time: ReferenceBatchTime
) -> Iterator[Pane | ReplacedWindow]:
    """Yield the rows of the pane, retractions first, and record what was emitted."""
    if not window.elements:
        yield from retract_empty_window(window, firing, batch_time)
        return
    elements = window.pending if stage.accumulation == "discarding" else window.elements
    columns = compute_columns(stage.aggregates, elements)
    yield from supersede_merged_panes(stage, window, firing, batch_time)
    is_changed = window.last_emitted is None or has_changed(stage, window, columns)
    if stage.accumulation == "retracting" and window.last_emitted is not None and is_changed:
        yield build_retract_row(window.key, window.last_emitted, firing, batch_time)
    is_row_needed = (
        is_changed or stage.accumulation != "retracting" or firing.timing == "on_time" or firing.is_final
    )
    if is_row_needed:
        pane = build_insert_row(window, columns, len(elements), firing, batch_time)
        yield replace(pane, is_restatement=stage.accumulation == "retracting" and not is_changed)
        window.pane_count += 1
        window.on_time_pane_count += firing.timing != "early"
    counts = (window.pane_count, window.on_time_pane_count)
    window.last_emitted = EmittedPane(window.start, window.end, columns, len(elements), *counts)
    window.pending = []


def has_changed(stage: Stage, window: ReferenceWindow, columns: Any) -> bool:
    """Tell whether the values differ from the last emitted ones."""
    assert window.last_emitted is not None
    return bool(
        pane_content(stage, window.key, columns)
        != pane_content(stage, window.key, window.last_emitted.values)
    )


def retract_empty_window(
    window: ReferenceWindow, firing: ReferenceFiring, batch_time: ReferenceBatchTime
) -> Iterator[Pane]:
    """Retract the pane of a window whose elements were all retracted."""
    if window.last_emitted is not None:
        yield build_retract_row(window.key, window.last_emitted, firing, batch_time)
    window.last_emitted = None
    window.pending = []


def supersede_merged_panes(
    stage: Stage, window: ReferenceWindow, firing: ReferenceFiring, batch_time: ReferenceBatchTime
) -> Iterator[Pane | ReplacedWindow]:
    """Retract the panes of merged windows, or mark them as replaced."""
    for emitted in window.unretracted_panes:
        if stage.accumulation == "retracting":
            yield build_retract_row(window.key, emitted, firing, batch_time)
        else:
            yield ReplacedWindow(
                window.key, emitted.start, emitted.end, window.start, window.end, batch_time.batch
            )
    window.unretracted_panes = ()


def retract_overdue_panes(
    stage: Stage, window: ReferenceWindow, batch_time: ReferenceBatchTime
) -> Iterator[Pane]:
    """Retract the panes of merged windows when those windows would have closed.

    A later stage could not process the retraction afterwards. No pane replaces them yet, so each row is the last,
    late pane of the merged window.
    """
    if stage.accumulation != "retracting":
        return
    due_panes = tuple(
        emitted
        for emitted in window.unretracted_panes
        if batch_time.watermark >= emitted.end + stage.lateness
    )
    for emitted in due_panes:
        yield build_retract_row(window.key, emitted, ReferenceFiring("late", is_final=True), batch_time)
    window.unretracted_panes = tuple(
        emitted for emitted in window.unretracted_panes if emitted not in due_panes
    )


def build_insert_row(
    window: ReferenceWindow,
    columns: Any,
    records: int,
    firing: ReferenceFiring,
    batch_time: ReferenceBatchTime,
) -> Pane:
    """Return the row that inserts the content of the window."""
    emitted = EmittedPane(
        window.start, window.end, columns, records, window.pane_count, window.on_time_pane_count
    )
    return build_row(window.key, emitted, firing, batch_time, "insert")


def build_retract_row(
    key: tuple[Any, ...], emitted: EmittedPane, firing: ReferenceFiring, batch_time: ReferenceBatchTime
) -> Pane:
    """Return the row that retracts the last pane of a window."""
    return build_row(key, emitted, firing, batch_time, "retract")


def build_row(
    key: tuple[Any, ...],
    emitted: EmittedPane,
    firing: ReferenceFiring,
    batch_time: ReferenceBatchTime,
    kind: RowKind,
) -> Pane:
    """Return a row; `emitted` has the number of earlier panes."""
    return Pane(
        key=key,
        start=emitted.start,
        end=emitted.end,
        values=emitted.values,
        pane_index=emitted.pane_count,
        timing=firing.timing,
        on_time_index=-1 if firing.timing == "early" else emitted.on_time_pane_count,
        final=firing.is_final,
        kind=kind,
        records=emitted.records,
        batch=batch_time.batch,
        clock=batch_time.clock,
        watermark=batch_time.stream_watermark,
    )
