"""Lines of plain text as records of the `lines` contract, or as JSON records of their own."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.core.clock import Clock
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.row_reader import RawRow, RowReader

MakeLineBatch = Callable[[Sequence[bytes], Any], SourceBatch]


def make_json_batch(lines: Sequence[bytes], position: Any) -> SourceBatch:
    """Return lines that are JSON records; they are checked later."""
    return SourceBatch(lines, position)


class TextLineParser:
    """Makes records of any text: what it says, and when it came."""

    def __init__(self, row_reader: RowReader, clock: Clock) -> None:
        self._row_reader = row_reader
        self._clock = clock

    def __call__(self, lines: Sequence[bytes], position: Any) -> SourceBatch:
        """Return the lines as records; one that is not UTF-8 is broken."""
        now = self._clock()
        return self._row_reader.make_batch([parse_text_line(line, now) for line in lines], lines, position)


def parse_text_line(line: bytes, at_ms: int) -> RawRow | InvalidRecordError:
    """Return a line as the fields of a record, at a time; one that is not UTF-8 as what is wrong with it."""
    try:
        return {"text": line.decode(), "at": at_ms}
    except UnicodeDecodeError as error:
        return InvalidRecordError("invalid utf-8", str(error))
