import dataclasses
from pathlib import Path

import pytest

from penstock.ingestion.contracts import (
    Contract,
    ContractField,
    TopicLayout,
    describe,
    json_codec,
    load_catalog,
    load_contract,
    load_contracts,
    parse_contract,
)
from penstock.ingestion.durations import parse_duration_ms
from penstock.ingestion.errors import ContractError, ContractNotFoundError, InvalidRecordError

SENSORS_CONTRACT = load_contract("sensors")
VALID_RECORD = b'{"id":"1-0","device":"d","site":"s","at":1700000000000,"temperature":21.5}'


def test_every_contract_of_the_catalog_names_its_fields_with_a_meaning():
    for contract in load_contracts():
        assert contract.doc
        assert all(field.doc.endswith(".") for field in contract.fields), contract.topic


def test_the_spark_schema_names_every_field_in_order():
    assert SENSORS_CONTRACT.to_spark_ddl() == (
        "`id` STRING, `device` STRING, `site` STRING, `at` BIGINT, `temperature` DOUBLE, `humidity` DOUBLE"
    )


def test_what_is_encoded_is_decoded_to_the_same_record():
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
        (VALID_RECORD.replace(b"21.5", b'"warm"'), "wrong type"),
        (VALID_RECORD.replace(b"1700000000000", b"1e30"), "wrong type"),
        (VALID_RECORD.replace(b"1700000000000", b"9" * 25), "wrong type"),
        (VALID_RECORD.replace(b"1700000000000", b"null"), "wrong type"),
        (VALID_RECORD.replace(b'"device":"d",', b""), "missing field"),
        (VALID_RECORD.replace(b'"device"', b'"gadget"'), "unknown field"),
        (VALID_RECORD.replace(b'"d"', b'"\xff\xfe"'), "invalid utf-8"),
        (VALID_RECORD.replace(b'"d"', b'"' + b"x" * 10_000_000 + b'"'), "too large"),
        (b'{"id":' + b"[" * 200_000, "wrong type"),
        (b"[" * 200_000, "wrong type"),
    ],
)
def test_an_invalid_record_has_its_reason(value: bytes, reason: str):
    with pytest.raises(InvalidRecordError) as caught:
        json_codec(SENSORS_CONTRACT).decode(value)
    assert caught.value.reason == reason


def test_numbers_keep_to_their_widths():
    contract = Contract(
        "t", "", (ContractField("n", "int", ""), ContractField("tags", "array<string>", "", required=False))
    )
    codec = json_codec(contract)
    assert codec.encode(codec.decode(b'{"n":2147483647,"tags":["a"]}')) == b'{"n":2147483647,"tags":["a"]}'
    with pytest.raises(InvalidRecordError):
        codec.decode(b'{"n":2147483648}')
    assert contract.to_spark_ddl() == "`n` INT, `tags` ARRAY<STRING>"


def test_a_contract_that_contradicts_itself_is_refused_with_the_field():
    for changes, word in (
        ({"key": "gadget"}, "gadget"),
        ({"event_time": "device"}, "timestamp"),
        ({"id": "humidity"}, "required"),
        ({"fields": (*SENSORS_CONTRACT.fields, SENSORS_CONTRACT.fields[0])}, "twice"),
        (
            {"fields": (*SENSORS_CONTRACT.fields, ContractField("many", "array<int>", "M.")), "key": "many"},
            "array 'many' as key",
        ),
        (
            {"fields": (ContractField("1a", "int", "A."),), "key": None, "event_time": None, "id": None},
            "invalid field name '1a'",
        ),
        (
            {"fields": (*SENSORS_CONTRACT.fields, ContractField("class", "int", "A."))},
            "invalid field name 'class'",
        ),
        (
            {"fields": (*SENSORS_CONTRACT.fields, ContractField("a b", "int", "A."))},
            "invalid field name 'a b'",
        ),
        ({"topic": "a b"}, "invalid topic name"),
        ({"topic": ".."}, "invalid topic name"),
        ({"topic": "a" * 240}, "240 characters"),
        ({"max_bytes": -5}, "max_bytes -5"),
        ({"max_bytes": 40_000_000}, "max_bytes 40000000"),
        ({"layout": TopicLayout(partitions=0)}, "in 'layout' 0 partitions. Use 1 or more"),
        ({"layout": TopicLayout(partitions=-1)}, "-1 partitions"),
        ({"environments": (("production", TopicLayout(replicas=0)),)}, "in 'production' 0 replicas"),
        ({"layout": TopicLayout(retention_ms=-7)}, "-7 ms"),
        ({"layout": TopicLayout(compacted=True), "key": None}, "no key"),
    ):
        with pytest.raises(ContractError, match=word):
            dataclasses.replace(SENSORS_CONTRACT, **changes)


def test_an_unknown_key_in_a_contract_is_refused_with_the_nearest_match():
    with pytest.raises(ContractError, match=r"unknown key 'partition'"):
        parse_contract({"topic": "t", "fields": [{"name": "a", "type": "long", "doc": ""}], "partition": 3})


FIELDS_YAML = "fields: [{name: x, type: long, doc: X.}]"
INVALID_CONTRACTS = [
    ("topic: [", "not valid YAML: expected the node content, but found the end of the file, at line 1"),
    ("just words", "must be a mapping, but is str"),
    (f"topic: a\nsince: 2026-99-99\n{FIELDS_YAML}", "cannot be read: month must be"),
    (f"topic: a\nduration: 10 seconds\n{FIELDS_YAML}", "has an unknown key 'duration'"),
    ("topic: a\nfields: 5", "has fields: 5, which must be a list"),
    ("topic: a\nfields: [x]", "A field must be a mapping"),
    ("topic: a\nfields: [{name: x, doc: X.}]", "Field 'x' has no 'type'"),
    ("topic: a\nfields: [{name: x, type: 5, doc: X.}]", "has type: 5, which must be text"),
    ("topic: a\nfields: [{name: x, type: number, doc: X.}]", "'number' is not a type"),
    (
        f"topic: a\nlayout: {{partitions: many}}\n{FIELDS_YAML}",
        "has partitions: 'many', which must be an integer",
    ),
    (f"topic: a\nlayout: {{settings: 5}}\n{FIELDS_YAML}", "has settings: 5, which must be a mapping"),
    (f"topic: a\nencoding: xml\n{FIELDS_YAML}", "an unknown encoding 'xml'. Use one of json, avro"),
]


@pytest.mark.parametrize(
    ("text", "problem"), INVALID_CONTRACTS, ids=[problem for _, problem in INVALID_CONTRACTS]
)
def test_an_invalid_file_affects_only_its_own_topic_and_names_the_problem(
    tmp_path: Path, text: str, problem: str
):
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text(f"topic: b\n{FIELDS_YAML}")
    found = load_catalog(tmp_path)
    assert [contract.topic for contract in found.contracts] == ["b"]
    assert list(found.errors_by_topic) == ["a"]
    assert problem in str(found.errors_by_topic["a"])
    assert str(tmp_path / "a.yaml") in str(found.errors_by_topic["a"])


def test_a_missing_contract_is_reported_with_the_nearest_match():
    with pytest.raises(ContractNotFoundError, match="Did you mean 'sensors'"):
        load_contract("sensor")


def test_a_contract_in_a_file_of_another_name_is_refused(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("topic: b\nfields: [{name: x, type: long, doc: X.}]\n")
    with pytest.raises(ContractError, match=r"b\.yaml"):
        load_contract("a", tmp_path)


def test_an_environment_overrides_the_layout_field_by_field():
    assert SENSORS_CONTRACT.layout_for("production").partitions == 12
    assert SENSORS_CONTRACT.layout_for("production").retention_ms == SENSORS_CONTRACT.layout.retention_ms
    assert SENSORS_CONTRACT.layout_for("elsewhere") == SENSORS_CONTRACT.layout


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10 seconds", 10_000), ("1ms", 1), ("7 d", 604_800_000), ("2 weeks", 1_209_600_000)],
)
def test_spans_of_time_are_read_as_written(text: str, expected: int):
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["ten seconds", "10", "10 parsecs", ""])
def test_what_is_no_span_of_time_is_refused(text: str):
    with pytest.raises(ContractError, match=r"not a duration|unknown unit"):
        parse_duration_ms(text)


def test_the_catalog_page_matches_the_contracts():
    assert describe.CATALOG_PAGE.read_text() == describe.render_page(load_contracts())


def test_a_contract_names_its_owner_and_its_personal_data():
    document = {"topic": "t", "owner": "team:web", "fields": [
        {"name": "user", "type": "string", "doc": "Who.", "personal": True},
        {"name": "page", "type": "string", "doc": "What."},
    ]}  # fmt: skip
    contract = parse_contract(document)
    assert [(item.name, item.personal) for item in contract.fields] == [("user", True), ("page", False)]
    page = describe.describe_contract(contract)
    assert "owner: team:web" in page
    assert "| `user` | string | yes | Who. *Personal.* |" in page
    with pytest.raises(ContractError, match=r"owner 'somebody'\. Use an email address or a team"):
        parse_contract({**document, "owner": "somebody"})
