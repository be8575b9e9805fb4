"""Rows of files, whose values are text or of somebody else's types, as records of a contract."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from penstock.ingestion.contracts import Contract, record_type
from penstock.ingestion.contracts.json_codec import reason_of
from penstock.ingestion.contracts.types import FieldType
from penstock.ingestion.errors import BrokenRecordError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.checking import Encode, SizeLimit, key_of

Row = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RowReader:
    """Makes records of rows: text becomes what the contract says, dates become milliseconds, empty means absent.

    So does a number that is none (NaN), which is how tables of numbers say that one is missing. In a field that is
    required, and anywhere if it is infinite, such a number breaks the contract.
    """

    def __init__(self, contract: Contract, encode: Encode) -> None:
        self._type = record_type(contract)
        self._encode = encode
        self._key_of = key_of(contract)
        self._size = SizeLimit(contract)
        self._optional = {field.name for field in contract.fields if not field.required}
        self._timestamps = {field.name for field in contract.fields if field.type == "timestamp"}
        self._fractions = [
            field.name for field in contract.fields if _innermost(field.kind) in ("float", "double")
        ]

    def batch(
        self, rows: Sequence[Row | BrokenRecordError], originals: Sequence[bytes], position: Any
    ) -> Batch:
        """Return rows as a checked batch; a row that breaks the contract as its original bytes."""
        values: list[bytes] = []
        keys: list[bytes | None] = []
        broken: dict[int, BrokenRecordError] = {}
        for row, original in zip(rows, originals, strict=True):
            try:
                record = self.record(row)
                key, value = self._key_of(record), self._encode(record)
                self._size.check(key, value)
            except BrokenRecordError as error:
                broken[len(values)] = error
                key, value = None, original
            values.append(value)
            keys.append(key)
        return Batch(values, position, keys, broken)

    def record(self, row: Row | BrokenRecordError) -> msgspec.Struct:
        """Return a row as a record, or raise BrokenRecordError."""
        if isinstance(row, BrokenRecordError):
            raise row
        present = {
            name: self._plain(name, value) for name, value in row.items() if self._is_there(name, value)
        }
        try:
            record = msgspec.convert(present, self._type, strict=False)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BrokenRecordError(reason_of(error), str(error)) from error
        self._judge_fractions(record)
        return record

    def _is_there(self, name: str, value: Any) -> bool:
        return value is not None and not (value == "" and name in self._optional)

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return _time_in(value) if name in self._timestamps else value
        if isinstance(value, date):
            return _milliseconds(value)
        return value

    def _judge_fractions(self, record: msgspec.Struct) -> None:
        """Judge the numbers that JSON has no word for: they would be null in the topic."""
        for name in self._fractions:
            value = getattr(record, name)
            if value is None or _finite(value):
                continue
            if name not in self._optional or value == value:
                raise BrokenRecordError(
                    "wrong type", f"`{value}` is no number that a record can hold, in {name}"
                )
            setattr(record, name, None)


def _innermost(kind: FieldType) -> str:
    return kind.name if kind.item is None else _innermost(kind.item)


def _finite(value: Any) -> bool:
    return all(map(_finite, value)) if isinstance(value, list) else math.isfinite(value)


def _time_in(text: str) -> Any:
    """Return the milliseconds of a time as ISO 8601 writes it; other texts as they are, to be judged later."""
    if text.isdecimal():
        return text
    try:
        return _milliseconds(datetime.fromisoformat(text))
    except ValueError:
        return text


def _milliseconds(value: date) -> int:
    """Return a time, or the beginning of a day, since the epoch; in UTC where it names no zone."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    since = value.replace(tzinfo=value.tzinfo or UTC) - _EPOCH
    return round(since / timedelta(milliseconds=1))
