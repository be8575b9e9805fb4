"""Converts rows of files to records of a contract."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.checker import EncodeRecord, RecordSizeLimit, make_key_function

RawRow = Mapping[str, Any]


class RowReader:
    """Converts rows to records: text to the types of the contract, dates to milliseconds, empty text to absent.

    NaN means absent, too. NaN in a required field, and infinity in any field, make the record invalid.
    """

    def __init__(self, contract: Contract, encode: EncodeRecord) -> None:
        self._judge = json_codec(contract).judge
        self._encode = encode
        self._find_key = make_key_function(contract)
        self._size_limit = RecordSizeLimit(contract)
        self._optional_fields = {field.name for field in contract.fields if not field.required}
        self._types = {field.name: field.parsed_type for field in contract.fields}

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
            name: self._normalize(name, value) if name in self._types else value
            for name, value in row.items()
            if self._is_present(name, value)
        }
        record = self._judge.convert(present, strict=False)
        self._check_floats(record)
        return record

    def _normalize(self, name: str, value: Any) -> Any:
        try:
            return self._types[name].normalize_row_value(value)
        except InvalidRecordError as error:
            raise InvalidRecordError(f"{error.reason}:{name}", error.detail) from error

    def _is_present(self, name: str, value: Any) -> bool:
        return value is not None and not (value == "" and name in self._optional_fields)

    def _check_floats(self, record: msgspec.Struct) -> None:
        """Handle NaN and infinity, which JSON cannot represent: they would be null in the topic."""
        for name, field_type in self._types.items():
            value = getattr(record, name)
            if value is None or field_type.is_finite(value):
                continue
            if name not in self._optional_fields or value == value:
                raise make_invalid_record(
                    "out_of_range", f"expected {field_type}, found NaN or infinity", name
                )
            setattr(record, name, None)
