"""JSON codec that validates records against their contract while it decodes them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.invalid_reasons import describe_size
from penstock.ingestion.contracts.record_formats.record_format import KeyedRecords
from penstock.ingestion.contracts.record_judge import RecordJudge
from penstock.ingestion.contracts.record_rules import to_record_rules
from penstock.ingestion.contracts.record_types import record_type


class JsonCodec:
    """Decodes and encodes the values of one contract.

    `decode` guarantees that every field of the result matches the contract. `encode` takes a structure from
    `decode`, or a mapping, which it validates first.
    """

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.record_type = record_type(contract)
        self.judge = RecordJudge(to_record_rules(contract), self.record_type)
        self._encoder = msgspec.json.Encoder()

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the decoded record; raise InvalidRecordError with the reason if it is invalid."""
        if len(value) > self.contract.max_bytes:
            raise describe_size(len(value), self.contract.max_bytes)
        return self.judge.decode(value)

    def encode(self, record: msgspec.Struct | Mapping[str, Any]) -> bytes:
        """Return the encoded value of a record, without absent fields."""
        if isinstance(record, Mapping):
            record = self.judge.convert(record)
        return self._encoder.encode(record)

    def is_encoded(self, _value: bytes) -> bool:
        """Return false: a value is the plain JSON of a record."""
        return False

    def find_keys(self, values: Sequence[bytes], _max_value_bytes: int) -> KeyedRecords:
        """Leave every value to the decoder."""
        return [None] * len(values), range(len(values))


@cache
def json_codec(contract: Contract) -> JsonCodec:
    """Return the cached codec of a contract."""
    return JsonCodec(contract)
