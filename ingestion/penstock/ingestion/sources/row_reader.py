"""Converts rows of files to records of a contract."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from penstock.ingestion.contracts import Contract, record_type
from penstock.ingestion.contracts.field_types import FieldType
from penstock.ingestion.contracts.json_codec import classify_decode_error
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.checker import EncodeRecord, RecordSizeLimit, make_key_function

RawRow = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RowReader:
    """Converts rows to records: text to the types of the contract, dates to milliseconds, empty text to absent.

    NaN means absent, too. NaN in a required field, and infinity in any field, make the record invalid.
    """

    def __init__(self, contract: Contract, encode: EncodeRecord) -> None:
        self._record_type = record_type(contract)
        self._encode = encode
        self._find_key = make_key_function(contract)
        self._size_limit = RecordSizeLimit(contract)
        self._optional_fields = {field.name for field in contract.fields if not field.required}
        self._timestamp_fields = {field.name for field in contract.fields if field.type == "timestamp"}
        self._float_fields = [
            field.name
            for field in contract.fields
            if _innermost_type(field.parsed_type) in ("float", "double")
        ]

    def make_batch(
        self, rows: Sequence[RawRow | InvalidRecordError], originals: Sequence[bytes], position: Any
    ) -> SourceBatch:
        """Return rows as a validated batch; the value of an invalid row is its original bytes."""
        values: list[bytes] = []
        keys: list[bytes | None] = []
        invalid: dict[int, InvalidRecordError] = {}
        for row, original in zip(rows, originals, strict=True):
            try:
                record = self.to_record(row)
                key, value = self._find_key(record), self._encode(record)
                self._size_limit.check(key, value)
            except InvalidRecordError as error:
                invalid[len(values)] = error
                key, value = None, original
            values.append(value)
            keys.append(key)
        return SourceBatch(values, position, keys, invalid)

    def to_record(self, row: RawRow | InvalidRecordError) -> msgspec.Struct:
        """Return a row as a record; raise InvalidRecordError if it is invalid."""
        if isinstance(row, InvalidRecordError):
            raise row
        present = {
            name: self._normalize_value(name, value)
            for name, value in row.items()
            if self._is_present(name, value)
        }
        try:
            record = msgspec.convert(present, self._record_type, strict=False)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InvalidRecordError(classify_decode_error(error), str(error)) from error
        self._check_floats(record)
        return record

    def _is_present(self, name: str, value: Any) -> bool:
        return value is not None and not (value == "" and name in self._optional_fields)

    def _normalize_value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return _parse_time_ms(value) if name in self._timestamp_fields else value
        if isinstance(value, date):
            return _to_epoch_ms(value)
        return value

    def _check_floats(self, record: msgspec.Struct) -> None:
        """Handle NaN and infinity, which JSON cannot represent: they would be null in the topic."""
        for name in self._float_fields:
            value = getattr(record, name)
            if value is None or _is_finite(value):
                continue
            if name not in self._optional_fields or value == value:
                raise InvalidRecordError("wrong type", f"`{value}` is not a finite number, in {name}")
            setattr(record, name, None)


def _innermost_type(field_type: FieldType) -> str:
    return field_type.name if field_type.item_type is None else _innermost_type(field_type.item_type)


def _is_finite(value: Any) -> bool:
    return all(map(_is_finite, value)) if isinstance(value, list) else math.isfinite(value)


def _parse_time_ms(text: str) -> Any:
    """Return the milliseconds of an ISO 8601 time; return other text unchanged, for validation."""
    if text.isdecimal():
        return text
    try:
        return _to_epoch_ms(datetime.fromisoformat(text))
    except ValueError:
        return text


def _to_epoch_ms(value: date) -> int:
    """Return the milliseconds of a time, or of the start of a day; UTC if it has no time zone."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    since_epoch = value.replace(tzinfo=value.tzinfo or UTC) - _EPOCH
    return round(since_epoch / timedelta(milliseconds=1))
