"""The recent warnings and errors of a stream, from the end of the log of this machine's host."""

import io
from collections import deque
from pathlib import Path

from penstock.platform.log_reading.log_entry import LogEntry, LogFilter
from penstock.platform.log_reading.log_parser import parse_lines

TAIL_BYTES = 256_000
MAX_ERRORS = 5


def read_recent_errors(logs: Path, stream: str) -> list[LogEntry]:
    """Return the newest warnings and errors of a stream, the newest first; none if no host has a log here."""
    path = logs / "host.log"
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, io.SEEK_END) - TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    log_filter = LogFilter("warning", stream)
    errors = deque((entry for entry in parse_lines(lines) if log_filter.accepts(entry)), MAX_ERRORS)
    return list(errors)[::-1]
