"""The pane diagram of a running stream, for a page: one key, with links from panes to rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from penstock.engine.diagrams import (
    DiagramScene,
    DrawnPane,
    EmbeddedDrawing,
    PlotArea,
    build_scene,
    draw_scene,
)
from penstock.engine.diagrams.scene_builder import (
    KeyValues,
    format_value,
    row_key,
    shown_column,
    timestamp_ms,
)
from penstock.platform.console.pane_reading import PaneReading

WIDTH, HEIGHT = 1080, 520
AREA = PlotArea(left=94, right=WIDTH - 30, top=10, bottom=HEIGHT - 42)
MAX_KEYS = 200


@dataclass(frozen=True)
class PanePicture:
    """The drawing, and the keys that one can choose from."""

    svg: str
    subtitle: str
    keys: Sequence[tuple[str, str]]
    """The value of each choice and its text."""
    key: str
    panes: int
    has_all_keys: bool
    """Whether more keys wrote panes than can be chosen."""


def draw_panes(reading: PaneReading, requested_key: str) -> PanePicture:
    """Draw the panes of a key; without a request that fits, those of the first key."""
    run_data = reading.run_data
    keys = sorted({row_key(run_data.stage, row) for row in run_data.pane_rows}, key=str)
    choices = {encode_key(key): key for key in keys}
    chosen = choices.get(requested_key, keys[0] if keys else ())
    scene = _complete_scene(reading, build_scene(run_data, chosen), chosen)
    drawing = EmbeddedDrawing(WIDTH, HEIGHT, f"Panes of {scene.title}: {scene.subtitle}")
    draw_scene(drawing, scene, AREA)
    return PanePicture(
        drawing.to_svg(),
        scene.subtitle,
        [(value, describe_key(key)) for value, key in list(choices.items())[:MAX_KEYS]],
        encode_key(chosen),
        len(scene.panes),
        len(keys) <= MAX_KEYS,
    )


def encode_key(key: KeyValues) -> str:
    """Return a key as text, for the address of a page."""
    return json.dumps(list(key), default=str)


def describe_key(key: KeyValues) -> str:
    """Return a key as a person reads it."""
    return ", ".join(map(str, key)) or "all records"


def _complete_scene(reading: PaneReading, scene: DiagramScene, key: KeyValues) -> DiagramScene:
    """Add links, retractions and invalid records."""
    stage = reading.run_data.stage
    rows = [row for row in reading.retractions if row_key(stage, row) == key]
    panes = [replace(pane, link=_link_to_rows(reading, key, pane)) for pane in scene.panes]
    retractions = [_to_retraction(reading, row, key) for row in rows]
    return replace(scene, panes=panes, retractions=retractions, invalid_records=reading.invalid_clocks)


def _to_retraction(reading: PaneReading, row: Mapping[str, Any], key: KeyValues) -> DrawnPane:
    value = format_value(row[shown_column(reading.run_data.stage)])
    start, end = (timestamp_ms(row[name], bound) for name, bound in _BOUNDS)
    pane = DrawnPane(start, end, int(timestamp_ms(row["batch_clock"], 0)), row["timing"], value)
    return replace(pane, link=_link_to_rows(reading, key, pane))


_BOUNDS = (("window_start", float("-inf")), ("window_end", float("inf")))


def _link_to_rows(reading: PaneReading, key: KeyValues, pane: DrawnPane) -> str:
    """Return the address of the rows of a key and window."""
    sink, stage = reading.sink, reading.run_data.stage
    conditions = [f'"{name}" = {_quote(value)}' for name, value in zip(stage.key, key, strict=False)]
    if abs(pane.start) != float("inf"):
        start = datetime.fromtimestamp(pane.start / 1000, UTC)
        conditions.append(f"window_start = '{start:%Y-%m-%d %H:%M:%S.%f}'")
    return f"/tables/{sink.folder}/{sink.name}?{urlencode({'where': ' AND '.join(conditions)})}"


def _quote(value: object) -> str:
    """Return a value as a literal in SQL."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"
