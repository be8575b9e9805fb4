"""Lines of an Apache access log, common or combined."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from penstock.ingestion.errors import BrokenRecordError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.rows import Row, RowReader

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(rf"(\S+) (\S+) (\S+) \[([^\]]+)\] {_QUOTED} (\d{{3}}) (\d+|-)(?: {_QUOTED} {_QUOTED})?\s*")


class AccessLogLines:
    """Makes a batch of log lines; one that is no such line is broken."""

    def __init__(self, rows: RowReader) -> None:
        self._rows = rows

    def __call__(self, lines: Sequence[bytes], position: Any) -> Batch:
        """Return the lines as records of the `access-log` contract."""
        return self._rows.batch([parsed(line) for line in lines], lines, position)


def parsed(line: bytes) -> Row | BrokenRecordError:
    """Return what a line says; fields that it marks with `-` are absent."""
    try:
        found = _LINE.fullmatch(line.decode())
    except UnicodeDecodeError as error:
        return BrokenRecordError("invalid utf-8", str(error))
    if found is None:
        return BrokenRecordError("malformed", "it is no line of an access log")
    host, _, user, time, request, status, size, referer, agent = found.groups()
    try:
        at = datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z")
    except ValueError as error:
        return BrokenRecordError("malformed", str(error))
    method, _, rest = request.partition(" ")
    path, _, protocol = rest.rpartition(" ")
    row = {"host": host, "user": user, "at": at, "method": method, "path": path or rest, "protocol": protocol}
    row |= {"status": int(status), "bytes": size, "referer": referer, "agent": agent}
    return {name: value for name, value in row.items() if value not in ("-", None)}
