"""From the tables of a run to the scene of one key: which key, which windows, and what each pane adds to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from penstock.pipelines.explain import words
from penstock.pipelines.pictures.panes import DrawnPane, Scene
from penstock.pipelines.plan.columns import values_of
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.windows import Fixed, Sessions, Sliding, Tumbling, Window

Row = Mapping[str, Any]
Key = tuple[Any, ...]
MOST_RECORDS = 400
SELDOM, NAMED = 200, 40
"""Rows of all keys that are drawn together, and those that are told by name as well."""
LONGEST_VALUE = 22


@dataclass(frozen=True)
class Told:
    """What a run told of a stage: its panes, what came too late, what was sent, and where the watermark was."""

    stage: Stage
    window: Window
    """Where its panes are: the stage's own, or those of the stage whose windows it shares."""
    panes: Sequence[Row]
    """Rows of the log of panes."""
    late: Sequence[Row]
    records: Sequence[tuple[int, int, Row]]
    """Event time, moment of sending, fields."""
    watermark: Sequence[tuple[int, int]]
    began: int
    ended: int


def scene(told: Told, key: Key | None = None) -> Scene:
    """Return the scene of a key; without one, of the key that shows most.

    What is said seldom, by a function with a memory or when a window is full, is drawn of all keys: of one of them
    there would be a dot.
    """
    stage = told.stage
    rows = [row for row in told.panes if row["kind"] == "insert" and is_drawn(told.window, row)]
    whole = key is None and isinstance(told.window, Remembering | Tumbling) and len(rows) <= SELDOM
    chosen = telling(stage, rows) if key is None else key
    of_key = {} if whole else dict(zip(stage.key, chosen, strict=False))
    return Scene(
        title=stage.name,
        subtitle=of_all(stage, len(rows)) if whole else subtitle(told, chosen),
        began=told.began,
        ended=told.ended,
        panes=list(drawn(told, [row for row in rows if is_of(row, of_key)], named=whole)),
        records=sample(told, of_key),
        dropped=[
            (milliseconds(row["event_time"], 0), milliseconds(row["batch_clock"], 0))
            for row in told.late
            if is_of(row, of_key)
        ],
        watermark=told.watermark,
    )


def is_of(row: Row, key: Mapping[str, Any]) -> bool:
    """Tell whether a row is of a key, as far as the row says it."""
    return all(row.get(name, part) == part for name, part in key.items())


def is_drawn(window: Window, row: Row) -> bool:
    """Tell whether a window is drawn: of sliding ones those that do not overlap, or nothing could be seen."""
    if not isinstance(window, Sliding) or row["window_start"] is None:
        return True
    return (milliseconds(row["window_start"], 0) - window.offset) % window.size == 0


def telling(stage: Stage, rows: Sequence[Row]) -> Key:
    """Return the key whose panes are of most kinds, and are most; of equal ones the first."""
    kinds: dict[Key, set[str]] = {}
    count: dict[Key, int] = {}
    for row in rows:
        key = key_of(stage, row)
        kinds.setdefault(key, set()).add(row["timing"])
        count[key] = count.get(key, 0) + 1
    return min(count, key=lambda key: (-len(kinds[key]), -count[key], str(key)), default=())


def key_of(stage: Stage, row: Row) -> Key:
    """Return a row's key."""
    return tuple(row[name] for name in stage.key)


def of_all(stage: Stage, rows: int) -> str:
    """Say what is shown of every key."""
    of = words.joined(list(stage.key))
    return f"{shown(stage)} of each {of}" if rows <= NAMED else f"a mark for each row, of every {of}"


def subtitle(told: Told, key: Key) -> str:
    """Say which key and which value is shown, in which windows."""
    stage, window = told.stage, told.window
    if len(key) < len(stage.key):
        return "no key has shown anything"
    of = ", ".join(f"{name} {part}" for name, part in zip(stage.key, key, strict=True)) or "all records"
    note = ""
    if isinstance(window, Sliding) and window.period < window.size:
        note = f" (drawn: every {ordinal(window.size // window.period)})"
    where = "" if isinstance(window, Remembering) else f", in {words.window(window)}"
    return f"{shown(stage)} of {of}{where}{note}"


def ordinal(count: int) -> str:
    """Say which one of a row."""
    return {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 10: "tenth"}.get(
        count, f"{count}th"
    )


def shown(stage: Stage) -> str:
    """Return the column whose values stand in the picture."""
    return values_of(stage)[0]


def drawn(told: Told, rows: Sequence[Row], *, named: bool = False) -> Iterator[DrawnPane]:
    """Yield panes in the order in which they appeared, each with the pane that it stands on; `named` by its key."""
    stage, apart = told.stage, isinstance(told.window, Fixed | Sliding | Sessions)
    before: list[DrawnPane] = []
    for row in sorted(rows, key=lambda row: (row["batch_clock"], str(row["window_start"]))):
        start, end = milliseconds(row["window_start"], -inf), milliseconds(row["window_end"], inf)
        clock = int(milliseconds(row["batch_clock"], 0))
        below = [pane.clock for pane in before if pane.start < end and start < pane.end]
        since = max(below, default=None) if apart else clock
        many = named and len(rows) > NAMED
        said = "" if many else plainly(row[shown(stage)])
        said = " ".join([*map(str, key_of(stage, row)), said]) if named and not many else said
        pane = DrawnPane(start, end, clock, row["timing"], said, since)
        before.append(pane)
        yield pane


def sample(told: Told, key: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return some of the records, evenly; those of the key, where the records themselves say it."""
    mine = [(event, sent) for event, sent, fields in told.records if is_of(fields, key)]
    return mine[:: -(-len(mine) // MOST_RECORDS) or 1]


def milliseconds(moment: datetime | None, endless: float) -> float:
    """Return a time; one that a table cannot show is an end of time."""
    return endless if moment is None else round(moment.timestamp() * 1000)


def plainly(value: object) -> str:
    """Say a value in a few letters."""
    match value:
        case None:
            return "nothing"
        case float():
            return f"{value:.4g}"
        case list():
            said = " ".join(plainly(item) for item in value)
        case _:
            said = str(value)
    return said if len(said) <= LONGEST_VALUE else f"{said[: LONGEST_VALUE - 1]}…"
