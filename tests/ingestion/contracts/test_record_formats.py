"""Formats of records: what is written is read again, and what is damaged is refused with its reason."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.ingestion.contracts.format_contracts import (
    FORMATS,
    make_contract,
    make_format_codec,
    make_schemas,
)
from tests.ingestion.contracts.typed_values import ALL_MAKERS
from tests.installed_kinds import installed_kinds

from penstock.engine.spark.parse.source_rules import build_record_rules
from penstock.engine.spark.parse.suspects import TopicRules, judge_value
from penstock.ingestion.contracts import Contract, ContractField, json_codec, parse_contract
from penstock.ingestion.contracts.record_formats.format_discovery import RECORD_FORMATS, find_record_format
from penstock.ingestion.contracts.schemas import parse_schema_fields
from penstock.ingestion.errors import (
    ContractError,
    IgnoredRecordError,
    IncompatibleChangeError,
    InvalidRecordError,
    RegistryError,
)
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.producer.record_serde import create_json_reader
from penstock.ingestion.registry import FileRegistry, register_contract
from penstock.stream import count, fixed, read

FIELDS = (
    ContractField("id", "string", "."),
    ContractField("at", "timestamp", "."),
    ContractField("amount", "decimal(12, 2)", ".", required=False),
    ContractField("count", "int", ".", required=False),
)
RECORD = {"id": "a", "at": 5, "amount": "12.50", "count": 0}
REGISTRY_FORMATS = [name for name in FORMATS if find_record_format(name).has_writer_schemas]


def fail(contract: Contract, value: bytes) -> str:
    with pytest.raises(InvalidRecordError) as caught:
        make_format_codec(contract).decode(value)
    return caught.value.reason


@pytest.mark.parametrize("encoding", FORMATS)
def test_a_value_of_each_type_is_read_as_it_was_written(encoding: str):
    rng = random.Random(5)
    for type_text, make_value in ALL_MAKERS.items():
        contract = make_contract(encoding, [ContractField("f", type_text, ".")])
        codec = make_format_codec(contract)
        for _ in range(20):
            member = make_value(rng).member
            record = json_codec(contract).decode(json.dumps({"f": member}).encode())
            decoded = codec.decode(codec.encode(record))
            assert read_stored(contract, decoded) == read_stored(contract, record), (
                type_text,
                member,
            )


def read_stored(contract: Contract, record: Any) -> Any:
    """Return the stored value of a record; in Protobuf, an empty part of a struct is an absent one."""
    convert = contract.fields[0].parsed_type.stored_converter
    return drop_empty(record.f if convert is None else convert(record.f))


def drop_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: drop_empty(part) for name, part in sorted(value.items()) if part not in (None, [], {})}
    return [drop_empty(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("encoding", FORMATS)
def test_the_fields_of_a_contract_survive_in_its_schema(encoding: str):
    contract = make_contract(
        encoding, [*FIELDS, ContractField("parts", "struct<a: int, b?: array<date>>", ".")]
    )
    parsed = parse_schema_fields(make_schemas(contract)[1])
    assert [(field.name, field.type, field.required) for field in parsed] == [
        (field.name, field.type, field.required) for field in contract.fields
    ]


@pytest.mark.parametrize("encoding", FORMATS)
def test_a_producer_encodes_json_and_passes_encoded_values_on(encoding: str, tmp_path: Path):
    contract = make_contract(encoding, FIELDS, key="id")
    checker = create_record_format(contract, FileRegistry(tmp_path)).checker
    text = json.dumps(RECORD).encode()
    encoded = checker.check(SourceBatch([text, b'{"id": 7}']))
    assert encoded.keys == [b"a", None]
    assert {index: error.reason for index, error in encoded.invalid.items()} == {1: "wrong_type:id"}
    again = checker.check(SourceBatch([encoded.values[0]], is_encoded=True))
    assert (again.keys, again.invalid, again.values) == ([b"a"], {}, [encoded.values[0]])
    assert checker.check(SourceBatch([encoded.values[0]])).values == [encoded.values[0]]


@pytest.mark.parametrize("encoding", FORMATS)
def test_a_value_of_a_topic_is_shown_as_json(encoding: str, tmp_path: Path):
    contract, registry = make_contract(encoding, FIELDS), FileRegistry(tmp_path)
    value = create_record_format(contract, registry).encode(json_codec(contract).judge.convert(RECORD))
    assert json.loads(create_json_reader(contract, registry)(value)) == RECORD


@pytest.mark.parametrize("encoding", REGISTRY_FORMATS)
def test_a_format_with_writer_schemas_needs_a_registry(encoding: str):
    with pytest.raises(RegistryError, match=f"encoding {encoding}"):
        create_record_format(make_contract(encoding, FIELDS))


@pytest.mark.parametrize("encoding", REGISTRY_FORMATS)
def test_a_value_of_an_unknown_schema_is_refused(encoding: str):
    contract = make_contract(encoding, FIELDS)
    value = make_format_codec(contract).encode(RECORD)
    assert fail(contract, value[:4] + b"\2" + value[5:]) == "wrong_schema"
    assert fail(contract, b"\1" + value[1:]) == "wrong_schema"
    assert fail(contract, b"\0\0") == "wrong_schema"


@pytest.mark.parametrize("encoding", REGISTRY_FORMATS)
def test_a_schema_of_another_topic_is_refused(encoding: str, tmp_path: Path):
    registry = FileRegistry(tmp_path)
    other = make_contract(encoding, [*FIELDS, ContractField("x", "int", ".", required=False)], topic="other")
    value = create_record_format(other, registry).encode(json_codec(other).judge.convert(RECORD))
    checker = create_record_format(make_contract(encoding, FIELDS), registry).checker
    checked = checker.check(SourceBatch([value], is_encoded=True))
    assert checked.invalid[0].reason == "wrong_schema"


@pytest.mark.parametrize("encoding", FORMATS)
def test_an_incompatible_change_is_refused(encoding: str, tmp_path: Path):
    registry = FileRegistry(tmp_path)
    register_contract(registry, make_contract(encoding, FIELDS))
    with pytest.raises(IncompatibleChangeError, match="'unit'"):
        register_contract(registry, make_contract(encoding, [*FIELDS, ContractField("unit", "string", ".")]))
    wider = make_contract(encoding, [*FIELDS, ContractField("unit", "string", ".", required=False)])
    assert register_contract(registry, wider).version == 2
    assert register_contract(registry, wider).version == 2


def test_a_format_that_does_not_exist_is_explained():
    with pytest.raises(ContractError, match="Did you mean 'protobuf'"):
        make_contract("protobuff", FIELDS)


class TestDebezium:
    """Events of changed rows."""

    ROW = b'{"id":"a","at":5,"amount":12.50,"count":0}'
    FIELDS = (*FIELDS, ContractField("op", "string", "."), ContractField("changed_at", "timestamp", "."))
    ENVELOPE = (("op", "op"), ("changed_at", "source.ts_ms"))

    def contract(self, deletes: str) -> Contract:
        return make_contract("debezium", self.FIELDS, deletes=deletes, envelope=self.ENVELOPE)

    def event(self, operation: str, before: bytes = b"null", after: bytes = b"null") -> bytes:
        return b'{"before":%b,"after":%b,"source":{"ts_ms":9,"lsn":1},"op":"%b","ts_ms":10}' % (
            before,
            after,
            operation.encode(),
        )

    def decode(self, value: bytes, deletes: str = "keep") -> dict[str, Any]:
        record = make_format_codec(self.contract(deletes)).decode(value)
        fields: dict[str, Any] = msgspec.to_builtins(record)
        return fields

    @pytest.mark.parametrize("operation", ["c", "r", "u"])
    @pytest.mark.parametrize("wrapper", [b"%b", b'{"schema":{"type":"struct"},"payload":%b}'])
    def test_a_record_has_the_row_after_the_change(self, operation: str, wrapper: bytes):
        value = wrapper % self.event(operation, b'{"id":"old"}', self.ROW)
        assert self.decode(value) == {**RECORD, "op": operation, "changed_at": 9}

    def test_a_deleted_row_is_kept_or_ignored(self):
        value = self.event("d", before=self.ROW)
        assert self.decode(value, "keep") == {**RECORD, "op": "d", "changed_at": 9}
        with pytest.raises(IgnoredRecordError):
            self.decode(value, "ignore")

    def test_a_tombstone_with_a_schema_part_is_ignored(self):
        with pytest.raises(IgnoredRecordError):
            self.decode(b'{"schema":null,"payload":null}')

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (b'{"op":"t","source":{},"ts_ms":1}', "unknown_operation"),
            (b'{"op":"m","message":{}}', "unknown_operation"),
            (b'{"op":"u","before":{"id":"a"}}', "missing_field:after"),
            (b'{"op":"d","before":null}', "missing_field:before"),
            (b'{"op":"d","before":{"id":"a"},"source":{"ts_ms":1}}', "missing_field:at"),
            (b'{"op":"c","after":{"id":"a","at":1}}', "missing_field:changed_at"),
            (b'{"op":"c","after":{"id":7,"at":1},"source":{"ts_ms":1}}', "wrong_type:id"),
            (b'{"op":"c","after":[]}', "malformed"),
            (b'{"op":1,"after":{}}', "malformed"),
            (b'{"after":{}}', "malformed"),
            (b'{"id":"a","at":1}', "malformed"),
            (b'{"payload":7}', "malformed"),
            (b"no", "malformed"),
        ],
    )
    def test_what_is_no_event_of_a_row_is_refused(self, value: bytes, reason: str):
        assert fail(self.contract("keep"), value) == reason

    def test_the_document_of_mongodb_is_text(self):
        text = json.dumps(self.ROW.decode()).encode()
        assert self.decode(self.event("c", after=text)) == {**RECORD, "op": "c", "changed_at": 9}

    def test_a_written_event_is_what_the_record_says(self):
        codec = make_format_codec(self.contract("keep"))
        row = {"id": "a", "at": 5, "amount": "12.50", "count": 0}
        deleted = codec.encode({**RECORD, "op": "d", "changed_at": 9})
        assert json.loads(deleted) == {"before": row, "after": None, "source": {"ts_ms": 9}, "op": "d"}
        created = make_format_codec(make_contract("debezium", FIELDS)).encode(RECORD)
        assert json.loads(created) == {"before": None, "after": row, "source": {}, "op": "c"}

    def test_a_contract_has_to_say_what_happens_to_deletes(self):
        document = {
            "topic": "orders",
            "encoding": "debezium",
            "envelope": {"op": "opp", "chnged": "source.ts_ms"},
            "fields": [{"name": "op", "type": "string", "doc": "."}],
        }
        with pytest.raises(ContractError) as caught:
            parse_contract(document)
        for part in ("Set deletes to ignore or keep", "'opp' for op", "'chnged' in the envelope"):
            assert part in str(caught.value)

    def test_other_formats_have_neither_deletes_nor_an_envelope(self):
        with pytest.raises(ContractError, match="json has no deleted rows"):
            make_contract("json", FIELDS, deletes="keep")
        with pytest.raises(ContractError, match="a value in avro has none"):
            make_contract("avro", FIELDS, envelope=(("id", "op"),))


class TestProtobuf:
    """Messages and their schemas."""

    def text(self, contract: Contract, *earlier: str) -> str:
        schema = find_record_format("protobuf").to_schema(contract, [{"proto": text} for text in earlier])
        text: str = schema["proto"]
        return text

    def test_the_schema_is_text_that_other_programs_read(self):
        contract = make_contract(
            "protobuf",
            [
                *FIELDS,
                ContractField("parts", "array<struct<a: int>>", "."),
                ContractField("m", "map<string, array<long>>", "."),
            ],
        )
        assert self.text(contract) == (
            'syntax = "proto3";\n\npackage penstock;\n\nmessage Orders {\n'
            "  optional string id = 1;  // required string\n"
            "  optional int64 at = 2;  // required timestamp\n"
            "  optional string amount = 3;  // optional decimal(12, 2)\n"
            "  optional int32 count = 4;  // optional int\n"
            "  message PartsValue {\n    optional int32 a = 1;\n  }\n"
            "  repeated PartsValue parts = 5;  // required array<struct<a: int>>\n"
            "  message MValue {\n    repeated int64 items = 1;\n  }\n"
            "  map<string, MValue> m = 6;  // required map<string, array<long>>\n"
            "}\n"
        )

    def test_a_field_keeps_its_number_and_a_removed_one_is_reserved(self):
        first = self.text(make_contract("protobuf", FIELDS))
        fields = [ContractField("unit", "string", ".", required=False), FIELDS[3], FIELDS[1], FIELDS[0]]
        second = self.text(make_contract("protobuf", fields), first)
        for line in ("unit = 5;", "count = 4;", "at = 2;", "id = 1;", "reserved 3;"):
            assert line in second
        assert self.text(make_contract("protobuf", fields), first, second) == second

    def test_a_record_is_read_by_the_schema_that_it_was_written_with(self):
        old = make_contract("protobuf", [FIELDS[1], FIELDS[0]])
        value = make_format_codec(old).encode({"id": "a", "at": 5})
        read: Any = make_format_codec(make_contract("protobuf", FIELDS), make_schemas(old)).decode(value)
        assert (read.id, read.at, read.amount) == ("a", 5, None)

    def test_a_message_of_another_program_is_read(self):
        schema = """
            syntax = "proto3";
            package shop;
            import "google/protobuf/timestamp.proto";
            message Unused { string x = 1; }
            message Shop {
              message Order {
                string id = 2;
                google.protobuf.Timestamp at = 3;
                Status status = 4;
                oneof price { double gross = 5; double net = 6; }
                repeated int32 counts = 7;
              }
              enum Status { STATUS_UNKNOWN = 0; STATUS_PAID = 1; }
            }
        """
        contract = make_contract(
            "protobuf",
            [
                ContractField("id", "string", "."),
                ContractField("at", "timestamp(iso8601)", "."),
                ContractField("status", "enum(STATUS_UNKNOWN, STATUS_PAID)", "."),
                ContractField("gross", "double", ".", required=False),
                ContractField("net", "double", ".", required=False),
                ContractField("counts", "array<int>", "."),
            ],
        )
        # The second message of the file, the first one inside of it; then id, at, status and net.
        message = b"\x12\x01a" + b"\x1a\x02\x08\x05" + b"\x20\x01" + b"\x31" + b"\0" * 6 + b"\xf0\x3f"
        value = b"\0\0\0\0\1" + b"\x04\x02\x00" + message
        read = msgspec.to_builtins(make_format_codec(contract, {1: {"proto": schema}}).decode(value))
        assert read == {
            "id": "a",
            "at": "1970-01-01T00:00:05Z",
            "status": "STATUS_PAID",
            "net": 1.0,
            "counts": [],
        }
        year_too_large = b"\0\0\0\0\1\x04\x02\x00" + b"\x1a\x08\x08" + b"\xff" * 6 + b"\x7f"
        with pytest.raises(InvalidRecordError, match="malformed"):
            make_format_codec(contract, {1: {"proto": schema}}).decode(year_too_large)
        wrong_index = b"\0\0\0\0\1" + b"\x02\x08" + message
        with pytest.raises(InvalidRecordError, match="wrong_schema"):
            make_format_codec(contract, {1: {"proto": schema}}).decode(wrong_index)

    @pytest.mark.parametrize(
        ("tail", "reason"),
        [
            (b"", "malformed"),
            (b"\xff", "malformed"),
            (b"\0\x0a\x05a", "malformed"),
            (b"\0\x0a\1\xff", "malformed"),
            (b"\0", "missing_field:id"),
            (b"\0\x0a\1a", "missing_field:at"),
        ],
    )
    def test_a_damaged_message_is_refused(self, tail: bytes, reason: str):
        assert fail(make_contract("protobuf", FIELDS), b"\0\0\0\0\1" + tail) == reason

    def test_fields_that_protobuf_cannot_tell_apart_are_refused(self):
        struct = "struct<x: int>"
        for names in (("m", "m_"), ("a_b", "aB")):
            with pytest.raises(ContractError, match="cannot be written in Protobuf"):
                make_contract("protobuf", [ContractField(name, struct, ".") for name in names])
        with pytest.raises(ContractError, match="'strng' is not a type"):
            make_contract("protobuf", [ContractField("a", "strng", ".")])

    def test_zero_is_not_absent(self):
        codec = make_format_codec(make_contract("protobuf", FIELDS))
        read: Any = codec.decode(codec.encode({"id": "", "at": 0, "count": 0}))
        assert (read.id, read.at, read.count, read.amount) == ("", 0, 0, None)

    def test_a_schema_that_is_no_protobuf_is_not_used(self):
        for text in (
            "message {",
            "not proto;;; $",
            'syntax = "proto3"; import "x.proto"; message A { B b = 1; }',
        ):
            assert (
                find_record_format("protobuf").find_readable_fields({"proto": text}, "orders", FIELDS) is None
            )


FORMAT_OF_A_USER = '''
"""JSON from the last byte to the first one."""

from penstock.ingestion.contracts.record_formats.json_based_format import JsonBasedCodec, JsonBasedFormat
from penstock.ingestion.contracts.schemas import to_json_schema


class ReversedFormat(JsonBasedFormat):
    keyword = "reversed"
    description = "JSON from the last byte to the first one"
    has_writer_schemas = False

    def to_schema(self, contract, earlier_schemas=()):
        return to_json_schema(contract)

    def open_reader(self, rules, find_schema):
        return lambda value: value[::-1]

    def make_codec(self, contract, schema_id, read_json, find_schema):
        return ReversedCodec(contract, read_json)


class ReversedCodec(JsonBasedCodec):
    def write(self, record):
        return super().write(record)[::-1]
'''


def test_a_format_of_a_user_is_used_by_its_keyword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    modules, reference = {"my_formats": FORMAT_OF_A_USER}, "my_formats:ReversedFormat"
    with installed_kinds(tmp_path, monkeypatch, RECORD_FORMATS, modules, reversed=reference):
        for encoding in ("reversed", reference):
            contract = make_contract(encoding, FIELDS, event_time="at")
            codec = make_format_codec(contract)
            value = codec.encode(RECORD)
            assert json.loads(value[::-1]) == RECORD
            assert codec.decode(value) == json_codec(contract).decode(value[::-1])
            (source,) = (
                read(contract).key("id").aggregate(n=count()).window(fixed("1 hour")).write("t").plan.sources
            )
            rules = build_record_rules(source)
            assert rules is not None
            assert judge_value(value, TopicRules(rules)).canonical is not None
            assert judge_value(value[1:], TopicRules(rules)).reason == "malformed"
