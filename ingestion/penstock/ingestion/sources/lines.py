"""Lines of plain text as records of the `lines` contract, or as JSON records of their own."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.ingestion.errors import BrokenRecordError
from penstock.ingestion.ledger import Clock
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.rows import Row, RowReader

MakeBatch = Callable[[Sequence[bytes], Any], Batch]


def json_batch(lines: Sequence[bytes], position: Any) -> Batch:
    """Return lines that are JSON records; they are checked later."""
    return Batch(lines, position)


class TextLines:
    """Makes records of any text: what it says, and when it came."""

    def __init__(self, rows: RowReader, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock

    def __call__(self, lines: Sequence[bytes], position: Any) -> Batch:
        """Return the lines as records; one that is not UTF-8 is broken."""
        now = self._clock()
        return self._rows.batch([text_row(line, now) for line in lines], lines, position)


def text_row(line: bytes, at: int) -> Row | BrokenRecordError:
    """Return a line as the fields of a record, at a time; one that is not UTF-8 as what is wrong with it."""
    try:
        return {"text": line.decode(), "at": at}
    except UnicodeDecodeError as error:
        return BrokenRecordError("invalid utf-8", str(error))
