"""Apache access logs: the source `access-log`, and the parser of its lines."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.log_tail import LOG_OPTIONS, LogTailSource
from penstock.ingestion.sources.row_reader import RawRow, RowReader
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE_PATTERN = re.compile(
    rf"(\S+) (\S+) (\S+) \[([^\]]+)\] {_QUOTED} (\d{{3}}) (\d+|-)(?: {_QUOTED} {_QUOTED})?\s*"
)


class AccessLogSource(SourceKind):
    """Apache access logs, common or combined, followed through rotations."""

    kind = "access-log"
    options = LOG_OPTIONS
    location = "path"

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a source of the log at the path."""
        return LogTailSource(context.resolve_path(), AccessLogParser(context.row_reader))


class AccessLogParser:
    """Converts log lines to records of the `access-log` contract; other lines are invalid."""

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader

    def __call__(self, lines: Sequence[bytes], position: Any) -> SourceBatch:
        """Return the lines as a batch of records."""
        return self._row_reader.make_batch([parse_access_log_line(line) for line in lines], lines, position)


def parse_access_log_line(line: bytes) -> RawRow | InvalidRecordError:
    """Return the fields of a line; fields with the value `-` are absent."""
    try:
        match = _LINE_PATTERN.fullmatch(line.decode())
    except UnicodeDecodeError as error:
        return make_invalid_record("invalid_utf8", str(error))
    if match is None:
        return make_invalid_record("malformed", "not a line of an access log")
    host, _, user, time, request, status, size, referer, agent = match.groups()
    try:
        at = datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z")
    except ValueError as error:
        return make_invalid_record("malformed", str(error))
    method, _, rest = request.partition(" ")
    path, _, protocol = rest.rpartition(" ")
    row = {"host": host, "user": user, "at": at, "method": method, "path": path or rest, "protocol": protocol}
    row |= {"status": int(status), "bytes": size, "referer": referer, "agent": agent}
    return {name: value for name, value in row.items() if value not in ("-", None)}
