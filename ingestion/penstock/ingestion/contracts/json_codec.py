"""Records as JSON: checked against their contract while they are decoded."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.record_types import record_type
from penstock.ingestion.errors import InvalidRecordError


class JsonCodec:
    """Decodes and encodes one contract's values.

    `decode` promises that what it returns keeps the contract in every field; a repeated member counts
    once, by its last value. `encode` takes a structure from `decode`, or a mapping, which it checks first.
    """

    # What `decode_unmeasured` raises; `broken` tells what each means.
    decode_errors = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.record_type = record_type(contract)
        self.decode_any_size: Callable[[bytes], msgspec.Struct] = msgspec.json.Decoder(
            self.record_type
        ).decode
        self._encoder = msgspec.json.Encoder()

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the record, or raise BrokenRecordError with the reason and the place."""
        limit = self.contract.max_bytes
        if len(value) > limit:
            raise InvalidRecordError("too large", f"{len(value)} bytes, and the contract allows {limit}")
        try:
            return self.decode_any_size(value)
        except self.decode_errors as error:
            raise self.to_invalid_record(error) from error

    @staticmethod
    def to_invalid_record(error: Exception) -> InvalidRecordError:
        """Return what a failure of `decode` or `decode_unmeasured` says about the record."""
        return (
            error
            if isinstance(error, InvalidRecordError)
            else InvalidRecordError(classify_decode_error(error), str(error))
        )

    def encode(self, record: msgspec.Struct | Mapping[str, Any]) -> bytes:
        """Return the value of a record, absent fields left out."""
        if isinstance(record, Mapping):
            record = self.convert_mapping(record)
        return self._encoder.encode(record)

    def convert_mapping(self, record: Mapping[str, Any]) -> msgspec.Struct:
        """Return a mapping as a record, or raise BrokenRecordError."""
        try:
            return msgspec.convert(record, self.record_type)
        except self.decode_errors as error:
            raise self.to_invalid_record(error) from error


@cache
def json_codec(contract: Contract) -> JsonCodec:
    """Return the codec of a contract; there is one of each."""
    return JsonCodec(contract)


def classify_decode_error(error: Exception) -> str:
    """Return the word by which a broken record is counted."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):
        return "invalid utf-8"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if "missing required field" in text:
        return "missing field"
    if "unknown field" in text:
        return "unknown field"
    return "wrong type" if isinstance(error, msgspec.ValidationError) else "malformed"
