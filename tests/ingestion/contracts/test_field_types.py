"""The types of fields: how they are written, and how Spark, Avro and JSON Schema name them."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ingestion.avro_contracts import make_codec
from tests.ingestion.contracts.typed_values import ALL_MAKERS

from penstock.ingestion.contracts import Contract, ContractField, json_codec, parse_contract
from penstock.ingestion.contracts.avro_columns import AvroColumnScan
from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.field_types.type_discovery import (
    parse_avro_type,
    parse_json_schema,
    parse_spark_type,
    parse_type,
)
from penstock.ingestion.contracts.record_formats.schema_header import SCHEMA_HEADER_BYTES
from penstock.ingestion.errors import ContractError

TYPES = [*ALL_MAKERS, "array<array<int>>", "map<string, struct<a: array<struct<b?: enum(x, y)>>>>"]
STORED_AS_ANOTHER = ("timestamp", "uuid", "time", "enum")


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_parsed_from_its_own_text(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_parsed_from_its_json_schema(text: str) -> None:
    assert parse_json_schema(parse_type(text).json_schema) == parse_type(text)


@pytest.mark.parametrize("text", [text for text in TYPES if "seconds" not in text and "iso8601" not in text])
def test_a_type_is_parsed_from_its_avro_type(text: str) -> None:
    assert parse_avro_type(parse_type(text).to_avro_type("T_f")) == parse_type(text)


@pytest.mark.parametrize("text", TYPES)
def test_a_spark_type_gives_a_type_that_is_stored_alike(text: str) -> None:
    field_type = parse_type(text)
    stored_alike = parse_spark_type(field_type.spark_type)
    assert stored_alike.spark_type == field_type.spark_type
    is_ambiguous = any(name in text for name in STORED_AS_ANOTHER) or "struct" in text
    assert is_ambiguous or stored_alike == field_type


@given(st.integers(), st.sampled_from(list(ALL_MAKERS)))
def test_a_value_is_the_same_after_avro_and_after_canonical_json(seed: int, text: str) -> None:
    contract = Contract("t", "T.", (ContractField("f", text, "F."),))
    value = ALL_MAKERS[text](random.Random(seed))
    record: Any = json_codec(contract).decode(msgspec.json.encode({"f": value.member}))
    codec = make_codec(contract)
    assert codec.decode(codec.encode(record)) == record
    field_type = contract.fields[0].parsed_type
    assert field_type.fault_finder is None or field_type.fault_finder(record.f) is None
    convert = field_type.json_converter
    canonical = msgspec.json.encode({"f": record.f if convert is None else convert(record.f)})
    assert json_codec(contract).decode(canonical) == record


@given(st.integers(), st.sampled_from(list(ALL_MAKERS)))
def test_a_scan_of_avro_accepts_only_what_the_decoder_accepts(seed: int, text: str) -> None:
    contract = Contract("t", "T.", (ContractField("f", text, "F.", required=False),))
    rng, codec = random.Random(seed), make_codec(contract)
    record = json_codec(contract).decode(msgspec.json.encode({"f": ALL_MAKERS[text](rng).member}))
    valid = codec.encode(record)
    position = rng.randrange(5, len(valid))
    damaged = valid[:position] + bytes([rng.randrange(256)]) + valid[position + 1 :]
    scanned = AvroColumnScan([valid, damaged], contract.fields, SCHEMA_HEADER_BYTES).valid_mask.tolist()
    if scanned[1]:
        codec.decode(damaged)
    left_to_decoder = ("iso8601", "uuid", "decimal")
    assert scanned[0] or any(name in text for name in left_to_decoder)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lnog", "'lnog' is not a type. Did you mean 'long'? Types: array<TYPE>, boolean, "),
        ("array", "Type array needs the type of its items. Write array<TYPE>, as in array<string>."),
        ("array<lnog>", "'lnog' is not a type. Did you mean 'long'?"),
        ("decimal(40)", "Write decimal(PRECISION, SCALE)"),
        ("decimal(4, 5)", "as in decimal(12, 2)"),
        ("enum", "Name its symbols, as in enum(new, paid)"),
        ("enum(a, b, a)", "Type enum names a symbol twice"),
        ("map<int, string>", "Write map<string, TYPE>"),
        ("struct<city>", "'city' is not a member of a struct. Write NAME: TYPE"),
        ("struct<a: int, A: int>", "Type struct has a member twice"),
        ("struct<a: lnog>", "Did you mean 'long'?"),
        ("string(20)", "Type string takes no arguments, but has (20). Remove them."),
        ("array<int", "'array<int' is not a type."),
    ],
)
def test_an_invalid_type_is_refused_with_the_nearest_one(text: str, problem: str) -> None:
    with pytest.raises(ContractError) as error:
        parse_type(text)
    assert problem in str(error.value)


def test_schemas_of_others_are_read_by_their_plain_types() -> None:
    assert parse_json_schema({"type": ["null", "integer"], "format": "int64"}) == parse_type("long")
    assert parse_json_schema({"type": "number"}) == parse_type("double")
    assert parse_avro_type({"type": "string", "avro.java.string": "String"}) == parse_type("string")


def test_members_and_symbols_are_keys_of_a_field() -> None:
    address = [
        {"name": "city", "type": "string", "doc": "City."},
        {"name": "since", "type": "date", "doc": "Day.", "required": False, "personal": True},
    ]
    fields = [
        {"name": "status", "type": "enum", "symbols": ["new", "paid"], "doc": "S."},
        {"name": "addresses", "type": "array<struct>", "fields": address, "doc": "A."},
    ]
    status, addresses = parse_contract({"topic": "t", "fields": fields}).fields
    assert status.type == "enum(new, paid)"
    assert addresses.type == "array<struct<city: string, since?: date>>"
    assert [member.doc for member in addresses.members] == ["City.", "Day."]
    assert addresses.personal


def test_a_symbol_that_avro_does_not_allow_is_refused_in_avro_only() -> None:
    field = {"name": "f", "type": "enum(in transit, lost)", "doc": "F."}
    assert parse_contract({"topic": "t", "fields": [field]}).fields[0].type == "enum(in transit, lost)"
    with pytest.raises(ContractError, match="Symbol 'in transit' is not allowed in Avro"):
        parse_contract({"topic": "t", "encoding": "avro", "fields": [field]})


TYPE_CHANGES = [
    ("decimal(12, 2)", "decimal(14, 2)", True),
    ("decimal(12, 2)", "decimal(12, 4)", False),
    ("decimal(12, 2)", "decimal(14, 4)", True),
    ("int", "decimal(12, 2)", True),
    ("long", "decimal(12, 2)", False),
    ("double", "decimal(12, 2)", False),
    ("enum(a, b)", "enum(a, b, c)", True),
    ("enum(a, b)", "enum(a)", False),
    ("enum(a, b)", "string", True),
    ("date", "string", True),
    ("uuid", "string", True),
    ("string", "uuid", False),
    ("struct<a: int>", "struct<a: long, b?: int>", True),
    ("struct<a: int>", "struct<a: int, b: int>", False),
    ("struct<a: int, b: int>", "struct<a: int>", True),
    ("struct<a?: int>", "struct<a: int>", False),
    ("map<string, int>", "map<string, long>", True),
    ("array<date>", "array<string>", True),
    ("timestamp(seconds)", "timestamp(millis)", False),
]


@pytest.mark.parametrize(("old", "new", "is_compatible"), TYPE_CHANGES)
def test_a_change_of_a_type_is_compatible_if_each_json_value_is_still_valid(
    old: str, new: str, is_compatible: bool
) -> None:
    before, after = ((ContractField("f", text, "F."),) for text in (old, new))
    assert (find_violations(before, after, "backward", "json") == ()) == is_compatible


@given(st.integers(), st.sampled_from(list(ALL_MAKERS)))
def test_a_decoded_value_is_converted_to_the_stored_one(seed: int, text: str) -> None:
    value = ALL_MAKERS[text](random.Random(seed))
    contract = Contract("t", "T.", (ContractField("f", text, "F."),))
    record: Any = json_codec(contract).decode(msgspec.json.encode({"f": value.member}))
    convert = contract.fields[0].parsed_type.stored_converter
    assert (record.f if convert is None else convert(record.f)) == value.stored
