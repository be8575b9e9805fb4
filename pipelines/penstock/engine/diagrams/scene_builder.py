"""From the tables of a run to the scene of one key: which key, which windows, and what each pane adds to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from penstock.engine.definition.phrases import join_phrases
from penstock.engine.diagrams.pane_diagram import DiagramScene, DrawnPane
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.windows.time_window import TimeWindow
from penstock.engine.windows.window import Window

PaneTableRow = Mapping[str, Any]
KeyValues = tuple[Any, ...]
MAX_DRAWN_RECORDS = 400
MAX_ROWS_OF_ALL_KEYS, MAX_NAMED_ROWS = 200, 40
"""The most rows that are drawn for all keys together, and the most that also name their key."""
MAX_VALUE_LENGTH = 22


@dataclass(frozen=True)
class StageRunData:
    """What a run told of a stage: its panes, what came too late, what was sent, and where the watermark was."""

    stage: Stage
    window: Window
    """Where its panes are: the stage's own, or those of the stage whose windows it shares."""
    pane_rows: Sequence[PaneTableRow]
    """The rows of the pane log."""
    late_rows: Sequence[PaneTableRow]
    records: Sequence[tuple[int, int, PaneTableRow]]
    """Event time, moment of sending, fields."""
    watermark: Sequence[tuple[int, int]]
    started: int
    ended: int


def build_scene(run_data: StageRunData, key: KeyValues | None = None) -> DiagramScene:
    """Return the scene of a key; without one, of the key that shows most.

    What is said seldom, by a function with a memory or when a window is full, is drawn of all keys: of one of them
    there would be a dot.
    """
    stage = run_data.stage
    rows = [row for row in run_data.pane_rows if row["kind"] == "insert" and is_drawn(run_data.window, row)]
    draws_all_keys = key is None and run_data.window.shows_all_keys and len(rows) <= MAX_ROWS_OF_ALL_KEYS
    chosen_key = choose_key(stage, rows) if key is None else key
    key_filter = {} if draws_all_keys else dict(zip(stage.key, chosen_key, strict=False))
    return DiagramScene(
        title=stage.name,
        subtitle=all_keys_subtitle(stage, len(rows))
        if draws_all_keys
        else key_subtitle(run_data, chosen_key),
        started=run_data.started,
        ended=run_data.ended,
        panes=list(
            iter_drawn_panes(
                run_data, [row for row in rows if has_key_values(row, key_filter)], named=draws_all_keys
            )
        ),
        records=sample_records(run_data, key_filter),
        late_records=[
            (timestamp_ms(row["event_time"], 0), timestamp_ms(row["batch_clock"], 0))
            for row in run_data.late_rows
            if has_key_values(row, key_filter)
        ],
        watermark=run_data.watermark,
    )


def has_key_values(row: PaneTableRow, key: Mapping[str, Any]) -> bool:
    """Return whether a row belongs to a key, as far as its columns tell."""
    return all(row.get(name, value) == value for name, value in key.items())


def is_drawn(window: Window, row: PaneTableRow) -> bool:
    """Return whether a window is drawn. Of windows that overlap, only some are drawn."""
    return row["window_start"] is None or window.is_drawn(timestamp_ms(row["window_start"], 0))


def choose_key(stage: Stage, rows: Sequence[PaneTableRow]) -> KeyValues:
    """Return the key whose panes are of most kinds, and are most; of equal ones the first."""
    kinds: dict[KeyValues, set[str]] = {}
    count: dict[KeyValues, int] = {}
    for row in rows:
        key = row_key(stage, row)
        kinds.setdefault(key, set()).add(row["timing"])
        count[key] = count.get(key, 0) + 1
    return min(count, key=lambda key: (-len(kinds[key]), -count[key], str(key)), default=())


def row_key(stage: Stage, row: PaneTableRow) -> KeyValues:
    """Return the key of a row."""
    return tuple(row[name] for name in stage.key)


def all_keys_subtitle(stage: Stage, row_count: int) -> str:
    """Return the subtitle of a diagram of all keys."""
    key_names = join_phrases(list(stage.key))
    return (
        f"{shown_column(stage)} of each {key_names}"
        if row_count <= MAX_NAMED_ROWS
        else f"a mark for each row, of every {key_names}"
    )


def key_subtitle(run_data: StageRunData, key: KeyValues) -> str:
    """Return the subtitle of a diagram of one key: its key, value and windows."""
    stage, window = run_data.stage, run_data.window
    if len(key) < len(stage.key):
        return "no key has shown anything"
    key_text = ", ".join(f"{name} {part}" for name, part in zip(stage.key, key, strict=True)) or "all records"
    drawn_note = ""
    if window.drawn_interval > 1:
        drawn_note = f" (drawn: every {ordinal(window.drawn_interval)})"
    window_note = "" if isinstance(window, StatefulFunction) else f", in {window.describe()}"
    return f"{shown_column(stage)} of {key_text}{window_note}{drawn_note}"


def ordinal(count: int) -> str:
    """Say which one of a row."""
    return {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 10: "tenth"}.get(
        count, f"{count}th"
    )


def shown_column(stage: Stage) -> str:
    """Return the column whose values label the panes."""
    return stage_value_columns(stage)[0]


def iter_drawn_panes(
    run_data: StageRunData, rows: Sequence[PaneTableRow], *, named: bool = False
) -> Iterator[DrawnPane]:
    """Yield panes in the order in which they appeared, each with the pane that it stands on; `named` by its key."""
    stage = run_data.stage
    is_time_window = isinstance(run_data.window, TimeWindow) and not run_data.window.never_ends
    earlier_panes: list[DrawnPane] = []
    for row in sorted(rows, key=lambda row: (row["batch_clock"], str(row["window_start"]))):
        start, end = timestamp_ms(row["window_start"], -inf), timestamp_ms(row["window_end"], inf)
        clock = int(timestamp_ms(row["batch_clock"], 0))
        overlapping_clocks = [pane.clock for pane in earlier_panes if pane.start < end and start < pane.end]
        previous_clock = max(overlapping_clocks, default=None) if is_time_window else clock
        omits_names = named and len(rows) > MAX_NAMED_ROWS
        pane_text = "" if omits_names else format_value(row[shown_column(stage)])
        pane_text = (
            " ".join([*map(str, row_key(stage, row)), pane_text]) if named and not omits_names else pane_text
        )
        pane = DrawnPane(start, end, clock, row["timing"], pane_text, previous_clock)
        earlier_panes.append(pane)
        yield pane


def sample_records(run_data: StageRunData, key_filter: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return some of the records, evenly; those of the key, where the records themselves say it."""
    key_records = [
        (event, sent) for event, sent, fields in run_data.records if has_key_values(fields, key_filter)
    ]
    return key_records[:: -(-len(key_records) // MAX_DRAWN_RECORDS) or 1]


def timestamp_ms(timestamp: datetime | None, unbounded_value: float) -> float:
    """Return a time; one that a table cannot show is an end of time."""
    return unbounded_value if timestamp is None else round(timestamp.timestamp() * 1000)


def format_value(value: object) -> str:
    """Format a value briefly."""
    match value:
        case None:
            return "nothing"
        case float():
            return f"{value:.4g}"
        case list():
            text = " ".join(format_value(item) for item in value)
        case _:
            text = str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"
