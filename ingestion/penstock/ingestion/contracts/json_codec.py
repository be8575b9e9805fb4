"""JSON codec that validates records against their contract while it decodes them."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.record_types import record_type
from penstock.ingestion.errors import InvalidRecordError


class JsonCodec:
    """Decodes and encodes the values of one contract.

    `decode` guarantees that every field of the result matches the contract. If a JSON member occurs more than once,
    the last value wins. `encode` takes a structure from `decode`, or a mapping, which it validates first.
    """

    # The errors of `decode_any_size`; `to_invalid_record` converts them.
    decode_errors = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.record_type = record_type(contract)
        self.decode_any_size: Callable[[bytes], msgspec.Struct] = msgspec.json.Decoder(
            self.record_type
        ).decode
        self._encoder = msgspec.json.Encoder()

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the decoded record; raise InvalidRecordError with the reason and the position if it is invalid."""
        limit = self.contract.max_bytes
        if len(value) > limit:
            raise InvalidRecordError("too large", f"{len(value)} bytes; the contract allows {limit}")
        try:
            return self.decode_any_size(value)
        except self.decode_errors as error:
            raise self.to_invalid_record(error) from error

    @staticmethod
    def to_invalid_record(error: Exception) -> InvalidRecordError:
        """Convert an error of `decode` or `decode_any_size` to an InvalidRecordError."""
        return (
            error
            if isinstance(error, InvalidRecordError)
            else InvalidRecordError(classify_decode_error(error), str(error))
        )

    def encode(self, record: msgspec.Struct | Mapping[str, Any]) -> bytes:
        """Return the encoded value of a record, without absent fields."""
        if isinstance(record, Mapping):
            record = self.convert_mapping(record)
        return self._encoder.encode(record)

    def convert_mapping(self, record: Mapping[str, Any]) -> msgspec.Struct:
        """Convert a mapping to a record; raise InvalidRecordError if it is invalid."""
        try:
            return msgspec.convert(record, self.record_type)
        except self.decode_errors as error:
            raise self.to_invalid_record(error) from error


@cache
def json_codec(contract: Contract) -> JsonCodec:
    """Return the cached codec of a contract."""
    return JsonCodec(contract)


def classify_decode_error(error: Exception) -> str:
    """Return the reason code under which an invalid record is counted."""
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
