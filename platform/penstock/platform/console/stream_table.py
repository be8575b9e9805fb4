"""The streams of the overview: their figures, their order, and which of them a search shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.platform.console.stack_reader import StackReading
from penstock.platform.control.reports import StreamOverview
from penstock.platform.services.stream_catalog import list_stream_names

MAX_ROWS = 100

Tone = Literal["good", "busy", "bad", "idle"]
"""How a state is shown, beside its word: by colour and by shape."""
StateFilter = Literal["started", "attention", "running", "stopped", "unstarted"]
STATE_FILTERS: Sequence[StateFilter] = get_args(StateFilter)

NEVER_STARTED = "never started"
_TONES: Mapping[str, Tone] = {
    "running": "good",
    "paused": "busy",
    "starting": "busy",
    "retrying": "bad",
    "failed": "bad",
    "fenced": "bad",
}


@dataclass(frozen=True)
class StreamRow:
    """A stream with its figures of the last minute."""

    name: str
    state: str
    tone: Tone
    needs_attention: bool
    note: str = ""
    records_per_second: float | None = None
    lag_records: int | None = None
    watermark_delay_ms: int | None = None
    batch_ms_p99: float | None = None
    late_share: float | None = None
    invalid_share: float | None = None
    committed_at_ms: int | None = None

    @property
    def note_summary(self) -> str:
        """The first line of the note."""
        return self.note.partition("\n")[0]

    def is_in(self, state_filter: StateFilter) -> bool:
        """Return whether a filter shows the stream."""
        match state_filter:
            case "started":
                return self.state != NEVER_STARTED
            case "attention":
                return self.needs_attention
            case "running":
                return self.tone == "good"
            case "stopped":
                return self.state in ("stopped", "drained")
            case "unstarted":
                return self.state == NEVER_STARTED


@dataclass(frozen=True)
class StreamTable:
    """The rows that a search shows, at most MAX_ROWS of `found`, and how many each filter has."""

    rows: Sequence[StreamRow]
    found: int
    counts: Mapping[StateFilter, int]
    search: str
    state_filter: StateFilter


def build_stream_rows(reading: StackReading) -> list[StreamRow]:
    """Return every stream, those that need attention first, then by name."""
    rows = [_build_row(reading, stream) for stream in reading.view.streams]
    started = {row.name for row in rows}
    unstarted = [name for name in list_stream_names() if name not in started]
    rows += [_build_unstarted_row(name, reading.invalid_files.get(name, "")) for name in unstarted]
    return sorted(rows, key=lambda row: (not row.needs_attention, row.name))


def search_streams(rows: Iterable[StreamRow], search: str, state_filter: StateFilter) -> StreamTable:
    """Return the streams with every word of a search in their name, state or note."""
    words = search.lower().split()
    matching = [row for row in rows if _has_words(row, words)]
    counts: dict[StateFilter, int] = {
        name: sum(row.is_in(name) for row in matching) for name in STATE_FILTERS
    }
    found = [row for row in matching if row.is_in(state_filter)]
    return StreamTable(found[:MAX_ROWS], len(found), counts, search, state_filter)


def _has_words(row: StreamRow, words: Sequence[str]) -> bool:
    text = f"{row.name} {row.state} {row.note}".lower()
    return all(word in text for word in words)


def _build_row(reading: StackReading, stream: StreamOverview) -> StreamRow:
    view, name, last = reading.view, stream.stream, stream.last
    state, rates = reading.states[name], view.rates.get(name)
    note = reading.notes.get(name, "") or reading.invalid_files.get(name, "")
    is_healthy = view.is_stream_healthy(stream) and state_tone(state) != "bad"
    has_watermark = last is not None and last.watermark_ms is not None and view.is_leased(stream)
    return StreamRow(
        name,
        state,
        state_tone(state),
        needs_attention=not is_healthy or name in reading.invalid_files,
        note=note,
        records_per_second=rates.records_per_second if rates else None,
        lag_records=stream.lag_records if last else None,
        watermark_delay_ms=view.at_ms - (last.watermark_ms or 0) if last and has_watermark else None,
        batch_ms_p99=rates.batch_ms_p99 if rates else None,
        late_share=rates.late_share if rates else None,
        invalid_share=rates.invalid_share if rates else None,
        committed_at_ms=last.commit_time_ms if last else None,
    )


def _build_unstarted_row(name: str, problem: str) -> StreamRow:
    return StreamRow(name, NEVER_STARTED, "bad" if problem else "idle", bool(problem), problem)


def state_tone(state: str) -> Tone:
    """Return how a state is shown."""
    return _TONES.get(state, "idle")
