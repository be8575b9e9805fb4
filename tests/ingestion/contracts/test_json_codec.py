"""Decoding and encoding of JSON records."""

import pytest

from penstock.ingestion.contracts import (
    Contract,
    ContractField,
    json_codec,
    load_contract,
)
from penstock.ingestion.errors import InvalidRecordError

SENSORS_CONTRACT = load_contract("sensors")


VALID_RECORD = b'{"id":"1-0","device":"d","site":"s","at":1700000000000,"temperature":21.5}'


def test_json_is_decoded_and_encoded_to_the_same_bytes():
    codec = json_codec(SENSORS_CONTRACT)
    record = codec.decode(VALID_RECORD)
    assert codec.encode(record) == VALID_RECORD
    assert (
        codec.encode({"id": "1-0", "device": "d", "site": "s", "at": 1_700_000_000_000, "temperature": 21.5})
        == VALID_RECORD
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (VALID_RECORD[:-5], "malformed"),
        (b"", "malformed"),
        (VALID_RECORD + b"{}", "malformed"),
        (VALID_RECORD.replace(b"21.5", b'"warm"'), "wrong_type:temperature"),
        (VALID_RECORD.replace(b"1700000000000", b"1e30"), "wrong_type:at"),
        (VALID_RECORD.replace(b"1700000000000", b"9" * 25), "event_time_out_of_range"),
        (VALID_RECORD.replace(b"1700000000000", b"null"), "missing_field:at"),
        (VALID_RECORD.replace(b'"device":"d",', b""), "missing_field:device"),
        (VALID_RECORD.replace(b'"device"', b'"gadget"'), "missing_field:device"),
        (VALID_RECORD.replace(b'"d"', b'"\xff\xfe"'), "invalid_utf8:device"),
        (VALID_RECORD.replace(b'"d"', b'"' + b"x" * 10_000_000 + b'"'), "too_large"),
        (b'{"id":' + b"[" * 200_000, "nested_too_deeply"),
        (b"[" * 200_000, "malformed"),
    ],
)
def test_an_invalid_record_has_its_reason(value: bytes, reason: str):
    with pytest.raises(InvalidRecordError) as caught:
        json_codec(SENSORS_CONTRACT).decode(value)
    assert caught.value.reason == reason


def test_an_integer_beyond_its_type_is_refused():
    contract = Contract(
        "t", "", (ContractField("n", "int", ""), ContractField("tags", "array<string>", "", required=False))
    )
    codec = json_codec(contract)
    assert codec.encode(codec.decode(b'{"n":2147483647,"tags":["a"]}')) == b'{"n":2147483647,"tags":["a"]}'
    with pytest.raises(InvalidRecordError):
        codec.decode(b'{"n":2147483648}')
    assert [field.parsed_type.spark_type for field in contract.fields] == ["INT", "ARRAY<STRING>"]
