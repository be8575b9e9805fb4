"""State rows as `penstock state show` prints them: readable names, ISO times, and nothing for internal defaults."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

NO_VALUE = "-"
NEVER = "never"

COLUMN_LABELS = {
    "unshown": "new records",
    "past_end": "watermark passed end",
    "shown": "has pane",
    "shown_records": "records in last pane",
    "finished_at_end": "closed at end",
    "finished": "closed",
    "owed_to": "merged into session",
    "newest": "newest event",
    "number": "next window",
    "since": "pending since",
    "came": "arrived",
    "of_left": "left input",
    "time": "event time",
    "ends": "end marker",
    "memory": "state",
    "has_memory": "has state",
    "base": "last trigger value",
}
"""The labels of columns whose stored names say too little."""

TIME_COLUMNS = {"newest", "since", "came", "time", "owed_to"}
"""Integer columns that hold milliseconds of UTC."""

_TIMER_PATTERN = re.compile(r"trigger_\d+_(timer|due|time)")
_LABEL_PREFIXES = (("shown_", "last pane: "), ("memory_", "state: "), ("held_", "record: "))


def to_readable_rows(
    rows: pa.Table, key_fields: Sequence[str], *, as_json: bool = False
) -> tuple[list[str], list[list[Any]]]:
    """Return column labels and rows.

    Times are ISO 8601 in UTC. A time that is not set is "never" and another missing value is "-"; in JSON both are
    null, and labels have underscores.
    """
    columns = [
        [
            _format_value(name, value, is_key=name in key_fields, as_json=as_json)
            for value in rows.column(name).to_pylist()
        ]
        for name in rows.column_names
    ]
    labels = [name if name in key_fields else column_label(name) for name in rows.column_names]
    if as_json:
        labels = [label.replace(": ", "_").replace(" ", "_") for label in labels]
    return labels, [list(row) for row in zip(*columns, strict=True)]


def column_label(name: str) -> str:
    """Return the readable name of a state column."""
    if name in COLUMN_LABELS:
        return COLUMN_LABELS[name]
    for prefix, label_prefix in _LABEL_PREFIXES:
        if name.startswith(prefix):
            return label_prefix + name.removeprefix(prefix).replace("_", " ")
    return name.replace("_", " ")


def _is_time(name: str) -> bool:
    return name in TIME_COLUMNS or _TIMER_PATTERN.fullmatch(name) is not None


def _format_value(name: str, value: Any, *, is_key: bool, as_json: bool) -> Any:
    if is_key:
        return value
    match value:
        case None:
            return None if as_json else NEVER if _is_time(name) else NO_VALUE
        case bool():
            return value if as_json else "yes" if value else "no"
        case int() if value in (MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS):
            return None if as_json else NEVER
        case int() if _is_time(name):
            return _format_time(datetime.fromtimestamp(value / 1000, UTC))
        case datetime():
            return _format_time(value)
        case str() if name == "timers":  # packed timers of a stateful function, as JSON
            return _format_value(name, json.loads(value) or None, is_key=False, as_json=as_json)
        case float() if not as_json:
            return f"{value:.12g}"
        case list():
            items = [_format_item(item) for item in value]
            return items if as_json else ", ".join(map(str, items)) or NO_VALUE
        case _:
            return value


def _format_item(item: Any) -> Any:
    """Format an element of a list: a timer has its due time in the field `at`."""
    if isinstance(item, dict):
        return {
            name: _format_value(
                "time" if name in ("at", "_time") else name, value, is_key=False, as_json=True
            )
            for name, value in item.items()
        }
    if isinstance(item, list):
        return [_format_value("time", part, is_key=False, as_json=True) for part in item]
    return _format_value("", item, is_key=False, as_json=True)


def _format_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
