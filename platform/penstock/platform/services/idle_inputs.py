"""Streams that wait for records: their open windows end only when a record moves the watermark."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.state_inspection import StageSnapshot, read_state_at
from penstock.engine.errors import PipelineError
from penstock.engine.stream_folders import resolve_stream_folder
from penstock.engine.upgrade.stored_plan import read_stored_plan

IDLE_AFTER_MS = 60_000
"""An input without records for this long is idle, whatever the pipeline says."""
MAX_COUNTED_ROWS = 100_000
"""Open windows are counted up to so many rows of state; counting more would take long."""


@dataclass(frozen=True)
class IdleInputs:
    """All inputs of a stream are idle since a time; its windows stay open until a record arrives."""

    since_ms: int
    open_windows: int
    is_count_exact: bool

    @property
    def text(self) -> str:
        """The state in a few words, for `penstock status`."""
        bound = "" if self.is_count_exact else "up to "
        plural = "" if self.open_windows == 1 else "s"
        return f"waiting: all inputs idle; {bound}{self.open_windows:,} open window{plural}"


def find_idle_inputs(streams: Path, stream: str, now_ms: int) -> IdleInputs | None:
    """Return since when all inputs of a stream are idle while windows wait for their end; None if not so.

    Reads the files of the stream, and changes nothing. A stream whose watermark follows the clock does not wait.
    """
    folder = resolve_stream_folder(streams, stream)
    outcome, plan = BatchJournal(folder / "journal").read_last_outcome(), read_stored_plan(folder)
    if outcome is None or plan is None or not outcome.watermark.marks:
        return None
    since_ms = max(mark.last_active_clock for mark in outcome.watermark.marks.values())
    follows_clock = all(source.watermark.advance_when_idle for source in plan.sources)
    if follows_clock or now_ms - since_ms < IDLE_AFTER_MS:
        return None
    windowed_stages = {
        stage.name
        for stage in plan.stages
        if stage.window.is_event_time_bound and not stage.window.never_ends
    }
    try:
        snapshots = read_state_at(folder, outcome.batch_id)
    except PipelineError:
        return None  # a host committed a newer batch meanwhile, so a record has arrived
    windowed = [snapshot for stage, snapshot in snapshots.items() if stage in windowed_stages]
    open_windows = sum(_count_open(snapshot, outcome.watermark.value) for snapshot in windowed)
    is_exact = all(snapshot.rows <= MAX_COUNTED_ROWS for snapshot in windowed)
    return IdleInputs(since_ms, open_windows, is_exact) if open_windows else None


def _count_open(snapshot: StageSnapshot, watermark_ms: int) -> int:
    """Count the windows whose end the watermark has not passed."""
    if snapshot.rows > MAX_COUNTED_ROWS:
        return snapshot.rows
    rows = snapshot.read_table()
    if "window_end" not in rows.column_names:  # the state is empty, or it has keys in place of windows
        return 0
    ends_ms = pc.divide(rows.column("window_end").cast(pa.int64()), 1000)
    return int(pc.sum(pc.greater(ends_ms, watermark_ms)).as_py() or 0)
