"""The types of fields: how they are written, and how Spark, Avro and JSON Schema name them."""

import pytest

from penstock.ingestion.contracts.field_types.type_discovery import (
    parse_avro_type,
    parse_json_schema,
    parse_spark_type,
    parse_type,
)
from penstock.ingestion.errors import ContractError

TYPES = [
    "string",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "timestamp",
    "array<string>",
    "array<array<int>>",
]


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_parsed_from_its_own_text(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_parsed_from_its_json_schema(text: str) -> None:
    assert parse_json_schema(parse_type(text).json_schema) == parse_type(text)


@pytest.mark.parametrize("text", [text for text in TYPES if text != "timestamp"])
def test_a_type_is_parsed_from_its_avro_type_and_spark_type(text: str) -> None:
    field_type = parse_type(text)
    assert parse_avro_type(field_type.to_avro_type("T_f")) == field_type
    assert parse_spark_type(field_type.spark_type) == field_type


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lnog", "'lnog' is not a type. Did you mean 'long'? Types: array<TYPE>, boolean, "),
        ("array", "Type array needs the type of its items. Write array<TYPE>, as in array<string>."),
        ("array<lnog>", "'lnog' is not a type. Did you mean 'long'?"),
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
