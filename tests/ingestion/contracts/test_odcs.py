"""Contracts as documents of the Open Data Contract Standard, checked with the schema of the standard."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft201909Validator
from open_data_contract_standard.model import OpenDataContractStandard
from tests.ingestion.contracts.typed_values import ALL_MAKERS

from penstock.ingestion.contracts import load_contracts, parse_contract
from penstock.ingestion.contracts.field_types.type_discovery import parse_odcs_type, parse_type
from penstock.ingestion.contracts.odcs import export_odcs, import_odcs
from penstock.ingestion.contracts.yaml_files import format_yaml
from penstock.ingestion.errors import ContractError

STANDARD_SCHEMA = files("open_data_contract_standard") / "schema.json"
VALIDATOR = Draft201909Validator(json.loads(STANDARD_SCHEMA.read_text("utf-8")))
TYPES = sorted({*ALL_MAKERS, "timestamp(iso8601, Europe/Paris)", "array<map<string, array<uuid>>>"})
# The list of time zones is read from disk each time.
DRAWN_TYPES = [text for text in TYPES if "Europe" not in text]
SCALAR_TYPES = [text for text in DRAWN_TYPES if parse_type(text).is_scalar]
DOCS = st.sampled_from(["", "A word.", "Größe: 名 #1", "yes"])
DURATIONS = st.sampled_from(["0 ms", "1 ms", "90 seconds", "2 hours", "7 days", "1h30m"])


def make_field(name: str, field_type: str) -> st.SearchStrategy[dict[str, Any]]:
    keys = {"doc": DOCS, "required": st.booleans(), "personal": st.booleans()}
    return st.fixed_dictionaries({"name": st.just(name), "type": st.just(field_type), **keys})


@st.composite
def fields(draw: st.DrawFn, depth: int = 2) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    drawn = []
    for name in names:
        if depth and draw(st.booleans()):
            wrapped = draw(st.sampled_from(["struct", "array<struct>", "map<string, array<struct>>"]))
            field = {**draw(make_field(name, wrapped)), "fields": draw(fields(depth - 1))}
        else:
            field = draw(make_field(name, draw(st.sampled_from(DRAWN_TYPES))))
        drawn.append(field)
    return drawn


LAYOUTS = st.fixed_dictionaries(
    {"partitions": st.integers(1, 99), "replicas": st.integers(1, 5)},
    optional={
        "retention": DURATIONS | st.just("forever"),
        "settings": st.dictionaries(st.sampled_from(["a.b", "c"]), st.sampled_from(["1", "true", ""])),
    },
)
OPTIONS = {
    "doc": DOCS,
    "compatibility": st.sampled_from(["none", "backward", "forward", "full"]),
    "max_bytes": st.integers(1, 1_000_000),
    "owner": st.sampled_from(["team:shop", "a@b.example", None]),
    "unknown_fields": st.sampled_from(["ignore", "keep", "refuse"]),
    "max_out_of_orderness": DURATIONS,
    "max_future_skew": DURATIONS | st.sampled_from(["unlimited", None]),
    "layout": LAYOUTS,
    "environments": st.dictionaries(st.sampled_from(["production", "test"]), LAYOUTS),
}


@st.composite
def contract_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a contract as its file declares it."""
    document = draw(st.fixed_dictionaries({}, optional=OPTIONS))
    key = {"name": "key_", "type": draw(st.sampled_from(SCALAR_TYPES)), "doc": "A key."}
    event_time = {"name": "at_", "type": "timestamp(iso8601)", "doc": "A time."}
    declared = [key, event_time, *draw(fields())]
    roles = {"key": "key_", "event_time": "at_", "id": "key_"}
    chosen = draw(st.sets(st.sampled_from(sorted(roles))))
    document |= {role: roles[role] for role in chosen}
    document |= {"topic": "t.1", "fields": declared}
    encodings = ["json_schema", "debezium"]
    if document.get("unknown_fields") != "keep":
        encodings += ["avro", "protobuf"]
    if draw(st.booleans()):
        document["encoding"] = draw(st.sampled_from(encodings))
    if document.get("encoding") == "debezium":
        document |= {
            "deletes": draw(st.sampled_from(["ignore", "keep"])),
            "envelope": {"at_": "source.ts_ms"},
        }
    return document


@settings(max_examples=30)
@given(contract_documents())
def test_a_contract_is_equal_after_export_and_import(document: dict[str, Any]) -> None:
    contract = parse_contract(document)
    # The validator of the standard's schema takes exponential time by depth: tests below validate flat contracts.
    exported = export_odcs(contract, "broker:9092")
    imported = import_odcs(yaml.safe_load(format_yaml(exported)))
    reparsed = parse_contract(imported.contract_document)
    # repr has documentation and personal data as well, which equality ignores.
    assert repr(reparsed) == repr(contract)
    assert [note.path for note in imported.notes] == ["servers.kafka.host"]


@pytest.mark.parametrize("contract", load_contracts(), ids=lambda contract: contract.topic)
def test_shipped_contracts_are_valid_documents_and_come_back_equal(contract: Any) -> None:
    exported = export_odcs(contract, "broker:9092")
    assert [error.message for error in VALIDATOR.iter_errors(exported)] == []
    OpenDataContractStandard(**exported)
    imported = import_odcs(exported)
    assert repr(parse_contract(imported.contract_document)) == repr(contract)
    assert [note.path for note in imported.notes] == ["servers.kafka.host"]


@pytest.mark.parametrize("text", TYPES)
def test_types_come_back_equal(text: str) -> None:
    assert parse_odcs_type(parse_type(text).odcs_type) == parse_type(text)


@pytest.mark.parametrize("text", [text for text in TYPES if parse_type(text).depth < 1])
def test_fields_of_each_type_are_valid_in_the_standard(text: str) -> None:
    field = {"name": "a", "type": text, "doc": "A.", "personal": True}
    exported = export_odcs(parse_contract({"topic": "t", "fields": [field]}), "broker:9092")
    assert [error.message for error in VALIDATOR.iter_errors(exported)] == []


def test_the_version_changes_exactly_if_the_contract_does() -> None:
    contracts = load_contracts()
    versions = [
        export_odcs(contract, address)["version"] for contract in contracts for address in ("a:1", "b:2")
    ]
    assert versions[::2] == versions[1::2]
    assert len(set(versions)) == len(contracts)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"logicalType": "integer"}, "long"),
        ({"logicalType": "integer", "physicalType": "INT"}, "int"),
        ({"logicalType": "integer", "logicalTypeOptions": {"format": "u16"}}, "int"),
        ({"logicalType": "number"}, "double"),
        ({"logicalType": "number", "physicalType": "NUMERIC(12,2)"}, "decimal(12, 2)"),
        ({"logicalType": "string", "physicalType": "VARCHAR(18)"}, "string"),
        ({"logicalType": "string", "logicalTypeOptions": {"format": "uuid"}}, "uuid"),
        ({"logicalType": "string", "logicalTypeOptions": {"format": "email"}}, "string"),
        ({"logicalType": "string", "enum": [{"value": "a", "label": "A"}]}, "enum(a)"),
        ({"logicalType": "timestamp"}, "timestamp(iso8601)"),
        ({"logicalType": "timestamp", "physicalType": "timestamp"}, "timestamp(iso8601)"),
        ({"logicalType": "timestamp", "physicalType": "BIGINT"}, "timestamp"),
        ({"logicalType": "timestamp", "logicalTypeOptions": {"timezone": False}}, "timestamp(iso8601, UTC)"),
        ({"logicalType": "array", "items": {"logicalType": "date"}}, "array<date>"),
        ({"physicalType": "ARRAY<BIGINT>"}, "array<long>"),
        ({"logicalType": "string", "physicalType": "os:system"}, "string"),
        (
            {
                "logicalType": "map",
                "map": {"key": {"logicalType": "string"}, "value": {"logicalType": "time"}},
            },
            "map<string, time>",
        ),
    ],
)
def test_types_of_others_become_the_nearest_type(keys: dict[str, Any], expected: str) -> None:
    assert str(parse_odcs_type(keys)) == str(parse_type(expected))


@pytest.mark.parametrize(
    "keys",
    [
        {"logicalType": "vector", "logicalTypeOptions": {"dimensions": 3}},
        {"logicalType": "integer", "logicalTypeOptions": {"format": "u64"}},
        {"logicalType": "time", "logicalTypeOptions": {"timezone": True}},
        {"logicalType": "array"},
        {"logicalType": "map", "map": {"key": {"logicalType": "integer"}, "value": {"logicalType": "date"}}},
        {"physicalType": "os:system"},
    ],
)
def test_types_without_an_equivalent_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ContractError, match="has no contract type"):
        parse_odcs_type(keys)


FOREIGN_DOCUMENT = yaml.safe_load(Path(__file__).with_name("foreign.odcs.yaml").read_text("utf-8"))


def test_a_document_of_others_becomes_a_contract() -> None:
    assert [error.message for error in VALIDATOR.iter_errors(FOREIGN_DOCUMENT)] == []
    assert import_odcs(FOREIGN_DOCUMENT).contract_document == {
        "topic": "payments.v1",
        "doc": "Payments of sellers.",
        "key": "paid_at",
        "id": "payment_id",
        "owner": "owner@shop.example",
        "fields": [
            {"name": "payment_id", "type": "string", "doc": ""},
            {"name": "paid_at", "type": "timestamp(iso8601)", "doc": "When."},
            {"name": "amount", "type": "decimal(12, 2)", "doc": "", "required": False},
            {"name": "email", "type": "string", "doc": "", "required": False, "personal": True},
            {"name": "grade", "type": "string", "doc": "", "required": False},
            {"name": "lines", "type": "array<struct<count?: long>>", "doc": "", "required": False},
        ],
        "layout": {"retention": "1095 days"},
    }


def test_each_part_that_a_contract_cannot_hold_is_in_the_list() -> None:
    payments = "schema.payments.v1.properties"
    notes = {note.path: note.action for note in import_odcs(FOREIGN_DOCUMENT).notes}
    assert {path: action.partition(":")[0].partition(";")[0] for path, action in notes.items()} == {
        "id": "not imported",
        "name": "not imported",
        "version": "not imported",
        "status": "not imported",
        "domain": "not imported",
        "description": "not imported",
        "servers.prod": "not imported, but for the format",
        "servers.prod.format": "not imported",
        "schema.payments.v1.name": 'imported as "payments.v1"',
        f"{payments}.payment_id.name": 'imported as "payment_id"',
        f"{payments}.payment_id.physicalType": 'imported as "string"',
        f"{payments}.payment_id.logicalTypeOptions": "not imported",
        f"{payments}.paid_at": "imported as timestamp(iso8601)",
        f"{payments}.amount.physicalType": 'imported as "decimal(12, 2)"',
        f"{payments}.amount.quality": "not imported",
        f"{payments}.embedding": "not imported",
        f"{payments}.email.tags": "not imported",
        f"{payments}.grade.enum": "not imported",
        f"{payments}.bad-name": "not imported",
        f"{payments}.lines.items.properties.count.logicalTypeOptions.minimum": "not imported",
        f"{payments}.lines.items.properties.vector": "not imported",
        "team.members.reader@shop.example": "not imported",
        "slaProperties.latency": "not imported",
        "support": "not imported",
        "customProperties.ruleset": "not imported",
    }
    assert "'bad-name'" in notes[f"{payments}.bad-name"]
    assert "encoding 'xml'" in notes["servers.prod.format"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Pipeline"}, "kind: DataContract"),
        ({"apiVersion": "v2.2.2"}, "Convert the document to v3"),
        ({"schema": []}, "has no schema"),
        ({"schema": [{"name": "a"}, {"name": "b"}]}, "2 objects: a, b. Name one of them with --object"),
        (
            {"schema": [{"name": "a", "properties": {"b": 1}}]},
            "schema.1.properties must be a list of mappings",
        ),
        ({"schema": [{"name": "a", "properties": []}]}, "No property can be imported as a field"),
        (
            {"schema": [{"name": "a b", "properties": [{"name": "c", "logicalType": "string"}]}]},
            "invalid topic name",
        ),
    ],
)
def test_a_document_without_a_contract_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        import_odcs({**FOREIGN_DOCUMENT, **change})


def test_one_of_several_objects_is_imported_by_name() -> None:
    objects = [{"name": name, "properties": [{"name": name, "logicalType": "date"}]} for name in "ab"]
    imported = import_odcs({**FOREIGN_DOCUMENT, "schema": objects}, "b")
    assert imported.contract_document["topic"] == "b"
    assert "schema.a" in {note.path for note in imported.notes}
    with pytest.raises(ContractError, match="has no object 'c'"):
        import_odcs({**FOREIGN_DOCUMENT, "schema": objects}, "c")
