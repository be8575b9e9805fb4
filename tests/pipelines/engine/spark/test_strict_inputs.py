"""Which inputs the strict parser reads."""

from typing import Any
from unittest.mock import Mock

import pytest

from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse import parser_selection
from penstock.engine.spark.parse.avro_parser import AvroParser
from penstock.engine.spark.parse.json_parser import JsonParser
from penstock.engine.spark.parse.strict_json_parser import (
    MAX_PARSED_FIELDS,
    StrictJsonParser,
    can_parse_strictly,
)
from penstock.ingestion.contracts import Contract, ContractField
from penstock.stream.input_specs import TopicInput


def test_plain_types_are_parsed_strictly():
    assert is_parsed(
        "string", "uuid", "date", "time", "bytes", "decimal(9, 2)", "timestamp(iso8601)", "boolean", "float"
    )


def test_nested_types_are_left_to_from_json():
    for other in ("array<int>", "map<string, int>", "struct<a: int>"):
        assert not is_parsed("string", other)


def test_a_record_of_many_fields_is_left_to_from_json():
    assert is_parsed(*["int"] * (MAX_PARSED_FIELDS - 1))
    assert not is_parsed(*["int"] * MAX_PARSED_FIELDS)


@pytest.mark.parametrize("has_classes", [True, False])
def test_only_json_is_parsed_strictly_and_only_with_the_classes(
    has_classes: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(parser_selection, "find_parser_class", lambda _: object() if has_classes else None)
    sources = [make_source("string"), make_source("string", encoding="avro")]
    parsers = parser_selection.make_parsers(Mock(), sources, {})
    assert [type(parser) for parser in parsers] == [
        StrictJsonParser if has_classes else JsonParser,
        AvroParser,
    ]


def is_parsed(*types: str) -> bool:
    return can_parse_strictly(make_source(*types))


def make_source(*types: str, encoding: Any = "json") -> PlanSource:
    fields = [ContractField(f"f{index}", each, "") for index, each in enumerate(types)]
    event_time = ContractField("at", "timestamp", "")
    contract = Contract("t", "", (*fields, event_time), event_time="at", encoding=encoding)
    return TopicInput(contract).to_source(None)
