"""Records of Avro topics, checked before they are sent."""

import dataclasses
import json
from pathlib import Path

import pytest
from tests.ingestion.avro_contracts import ODD_CONTRACT, SENSORS_AVRO, encode_readings, make_codec

from penstock.ingestion.contracts import (
    ContractField,
)
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.producer.encoding_checker import EncodingChecker
from penstock.ingestion.producer.record_serde import RecordSerde
from penstock.ingestion.registry import FileRegistry


def test_avro_needs_a_registry():
    with pytest.raises(RegistryError, match="sensors"):
        create_record_format(SENSORS_AVRO)


def test_records_with_an_older_schema_are_read(tmp_path: Path):
    registry = FileRegistry(tmp_path)
    old = dataclasses.replace(
        SENSORS_AVRO, fields=tuple(f for f in SENSORS_AVRO.fields if f.name != "humidity")
    )
    value = create_record_format(old, registry).encode(
        make_codec(old).decode(make_codec(old).encode(make_codec().decode(encode_readings(1)[0])))
    )
    checked = create_record_format(SENSORS_AVRO, registry).checker.check(
        SourceBatch([value], is_encoded=True)
    )
    assert (checked.invalid, checked.keys) == ({}, [b"device-0016"])


def test_json_for_an_avro_topic_is_encoded(tmp_path: Path):
    record_format = create_record_format(SENSORS_AVRO, FileRegistry(tmp_path))
    record = {"id": "a", "device": "d", "site": "s", "at": 1, "temperature": 2.5}
    checked = record_format.checker.check(SourceBatch([json.dumps(record).encode(), b"{"]))
    assert checked.keys == [b"d", None]
    assert checked.invalid[1].reason == "malformed"
    assert checked.values[1] == b"{"
    assert make_codec().decode(checked.values[0]).temperature == 2.5


def test_json_too_large_as_avro_is_invalid(tmp_path: Path):
    small = dataclasses.replace(
        ODD_CONTRACT,
        max_bytes=1_000,
        fields=(*ODD_CONTRACT.fields, ContractField("n", "array<double>", "N.")),
    )
    checker = create_record_format(small, FileRegistry(tmp_path)).checker
    record = {"text": "t", "deep": [], "yes": True, "at": 1}
    checked = checker.check(SourceBatch([json.dumps(record | {"n": [0] * n}).encode() for n in (100, 200)]))
    assert {index: error.reason for index, error in checked.invalid.items()} == {1: "too_large"}


def test_the_size_of_avro_includes_its_key():
    encoded = [
        make_codec(ODD_CONTRACT).encode({"text": "k" * n, "deep": [], "yes": True, "at": 1})
        for n in (480, 500)
    ]
    small = dataclasses.replace(ODD_CONTRACT, max_bytes=1_000)

    checked = EncodingChecker(make_codec(small)).check(SourceBatch(encoded, is_encoded=True))
    assert {index: error.reason for index, error in checked.invalid.items()} == {1: "too_large"}
    assert checked.keys == [b"k" * 480, None]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda value: value[:-1], "malformed"),
        (lambda value: value + b"\0", "malformed"),
        (lambda value: b"\1" + value[1:], "wrong_schema"),
        (lambda value: b"\0\0\0\0\7" + value[5:], "wrong_schema"),
        (lambda _value: b"", "wrong_schema"),
        (lambda value: value.replace(b"device-", b"\xff\xfevice-"), "invalid_utf8:device"),
        (lambda value: value[:5] + b"\xff" * 20, "malformed"),
        (lambda value: value + b"x" * 10_000_000, "too_large"),
    ],
)
def test_invalid_avro_has_its_reason(damage, reason: str):
    checked = create_sensors_format().checker.check(
        SourceBatch([*encode_readings(3), damage(encode_readings(1)[0])], is_encoded=True)
    )
    assert {index: error.reason for index, error in checked.invalid.items()} == {3: reason}


def create_sensors_format():
    return RecordSerde(
        EncodingChecker(make_codec()), make_codec().encode, make_codec().decode, make_codec().decode
    )
