"""Splits the lines of a log into entries.

Known are the formats of the platform (text and JSON), Spark, Kafka, Dagster and supervisord. A line of another form
belongs to the entry above it; in a log without any known form, each line is an entry.
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from penstock.platform.log_reading.log_entry import LogEntry, LogLevel

LEVEL_NAMES: dict[str, LogLevel] = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "crit": "critical",
    "critical": "critical",
    "fatal": "critical",
}

_ANSI_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_HEADER = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?) ?(?P<zone>Z|[+-]\d\d:?\d\d)?"
    r"(?: - (?P<logger>\S+) -)? +(?P<level>[A-Za-z]+) *(?:-|:)? *(?:\[(?P<stream>[\w.-]+)(?: \d+)?\] )?"
)


class LogParser:
    """Collects the lines of one log. An entry is complete when the next one starts, or at `flush`."""

    def __init__(self) -> None:
        self._current: LogEntry | None = None
        self._details: list[str] = []
        self._has_headers = False

    def add_line(self, line: str) -> Iterator[LogEntry]:
        """Add a line; yield the entry that it completes."""
        entry = parse_header(line)
        if entry is None and self._has_headers and self._current is not None:
            self._details.append(line)
            return
        self._has_headers = self._has_headers or entry is not None
        yield from self.flush()
        self._current = entry or LogEntry(line)

    def flush(self) -> Iterator[LogEntry]:
        """Yield the last entry."""
        if self._current is not None:
            entry = self._current
            details = (*entry.details, *self._details)
            self._current, self._details = None, []
            yield LogEntry(entry.first_line, entry.at_ms, entry.level, entry.stream, details)


def parse_lines(lines: Iterable[str]) -> Iterator[LogEntry]:
    """Yield the entries of a whole log."""
    parser = LogParser()
    for line in lines:
        yield from parser.add_line(line)
    yield from parser.flush()


def parse_header(line: str) -> LogEntry | None:
    """Return the entry that a line starts; None if it starts none."""
    if line.startswith("{"):
        return _parse_json(line)
    plain_line = _ANSI_COLOR.sub("", line)
    header = _HEADER.match(plain_line)
    level = LEVEL_NAMES.get(header["level"].lower()) if header else None
    if header is None or level is None:
        return None
    zone = (header["zone"] or "Z").replace("Z", "+00:00")
    return LogEntry(line, to_milliseconds(header["time"].replace(",", ".") + zone), level, header["stream"])


def _parse_json(line: str) -> LogEntry | None:
    try:
        fields: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    if "message" not in fields:
        return None
    stream = fields.get("stream")
    batch = fields.get("batch")
    level = LEVEL_NAMES.get(str(fields.get("level", "")).lower())
    at_ms = to_milliseconds(str(fields.get("at", "")))
    origin = (
        f"[{stream}{'' if batch is None else f' {batch}'}] " if stream else f"{fields.get('logger', '')}: "
    )
    message, *more_lines = str(fields["message"]).splitlines() or [""]
    time_text = "" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} "
    details = (*more_lines, *str(fields.get("exception", "")).splitlines())
    return LogEntry(f"{time_text}{(level or '').upper():<8}{origin}{message}", at_ms, level, stream, details)


def to_milliseconds(text: str) -> int | None:
    """Return an ISO 8601 time in milliseconds, in UTC if it names no zone; None for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
