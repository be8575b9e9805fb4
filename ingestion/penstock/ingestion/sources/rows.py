"""Rows of files, whose values are text or of somebody else's types, as records of a contract."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from penstock.ingestion.contracts import Contract, record_type
from penstock.ingestion.contracts.json_codec import reason_of
from penstock.ingestion.errors import BrokenRecordError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.checking import Encode, SizeLimit, key_of

Row = Mapping[str, Any]


class RowReader:
    """Makes records of rows: text becomes what the contract says, dates become milliseconds, empty means absent."""

    def __init__(self, contract: Contract, encode: Encode) -> None:
        self._type = record_type(contract)
        self._encode = encode
        self._key_of = key_of(contract)
        self._size = SizeLimit(contract)
        self._optional = {field.name for field in contract.fields if not field.required}

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
        present = {name: _plain(value) for name, value in row.items() if self._is_there(name, value)}
        try:
            return msgspec.convert(present, self._type, strict=False)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BrokenRecordError(reason_of(error), str(error)) from error

    def _is_there(self, name: str, value: Any) -> bool:
        return value is not None and not (value == "" and name in self._optional)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.replace(tzinfo=value.tzinfo or UTC).timestamp() * 1_000)
    return value
