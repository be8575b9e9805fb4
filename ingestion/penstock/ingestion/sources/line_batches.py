"""Converts lines to batches: plain text for the `lines` contract, or JSON records."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.core.clock import Clock
from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.row_reader import RawRow, RowReader

MakeLineBatch = Callable[[Sequence[bytes], Any], SourceBatch]


def make_json_batch(lines: Sequence[bytes], position: Any) -> SourceBatch:
    """Return lines that are JSON records. They are validated later."""
    return SourceBatch(lines, position)


class TextLineParser:
    """Converts text lines to records with the text and the time of arrival."""

    def __init__(self, row_reader: RowReader, clock: Clock) -> None:
        self._row_reader = row_reader
        self._clock = clock

    def __call__(self, lines: Sequence[bytes], position: Any) -> SourceBatch:
        """Return the lines as a batch of records; a line that is not UTF-8 is invalid."""
        now = self._clock()
        return self._row_reader.make_batch([parse_text_line(line, now) for line in lines], lines, position)


def parse_text_line(line: bytes, at_ms: int) -> RawRow | InvalidRecordError:
    """Return the fields of a line, or an error if it is not UTF-8."""
    try:
        return {"text": line.decode(), "at": at_ms}
    except UnicodeDecodeError as error:
        return make_invalid_record("invalid_utf8", str(error))
