"""Stream and producer give a record the same verdict, reason and value, over random contracts and records."""

import json
import math
import random
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import numpy as np
import pytest
from pyspark.sql import Row

from penstock.engine.batch.batch_input import UnprovenRecordsError
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.parse.record_parser import IGNORED, WriterSchemas
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL, parse_records
from penstock.engine.spark.parse.suspects import UNPROVEN
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.ingestion.contracts import Contract, ContractField, json_codec
from penstock.ingestion.contracts.contract_modes import (
    UNKNOWN_FIELDS_COLUMN,
    DeletePolicy,
    UnknownFieldPolicy,
)
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format
from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.contracts.record_rules import to_record_rules
from penstock.ingestion.errors import IgnoredRecordError, InvalidRecordError
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.registry import ReadableSchemas
from penstock.stream import fixed, read, sum_
from penstock.stream.input_specs import TopicInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RECORDS_PER_CONTRACT = 600
POLICIES: tuple[UnknownFieldPolicy, ...] = ("ignore", "ignore", "ignore", "keep", "refuse")
ENCODINGS = ("json_schema", "debezium", "protobuf")
TYPES = (
    *("string", "string", "int", "long", "double", "float", "boolean", "timestamp", "timestamp(iso8601)"),
    "decimal(9, 2)",
    *("array<string>", "array<double>", "array<array<int>>", "map<string, string>"),
    "struct<a: string, b?: double>",
)
ENVELOPE_FIELDS = (
    ContractField("operation", "string", ""),
    ContractField("read_at", "long", "", required=False),
)
ENVELOPE = (("operation", "op"), ("read_at", "source.ts_ms"))
VALID_TEXTS: Mapping[str, tuple[str, ...]] = {
    "string": (
        *('"a word"', '"é"', '""', '"12"', '"-7.5"', '"1e3"', '"true"', '"null"', '"NaN"', '" 12 "', '"[1]"'),
        *(
            '"{}"',
            '"a}b"',
            '"\\"id\\":"',
            '"\\u00e9\\ud83d\\ude00"',
            '"😀"',
            '"\\\\ud83d"',
            '"\ufffd"',
            '"2026-01-01"',
        ),
    ),
    "int": ("0", "-0", "2147483647", "-2147483648"),
    "long": ("0", "9223372036854775807", "-9223372036854775808", "1700000000000"),
    "double": ("1", "-0.0", "1.5e300", "0.1", "123456789012345678901234567890", "1E-400"),
    "float": ("1", "0.5", "1e10", "16777217"),
    "boolean": ("true", "false"),
    "decimal(9, 2)": ("0", "-0.25", "1234567.89", '"12.5"', '"-1"', "1e2"),
    "timestamp": ("1700000000000", "5", "-62135596800000", "253402300799999"),
    "timestamp(iso8601)": ('"2026-01-31T10:00:00Z"', '"2026-01-31T10:00:00.123456+02:00"'),
    "array<string>": ("[]", '["a"]', '["12","x"]', '["a","b}"]'),
    "array<double>": ("[]", "[1,2.5]"),
    "array<array<int>>": ("[]", "[[],[1]]"),
    "map<string, string>": ("{}", '{"k":"v","l":"12"}', '{"k": "}"}'),
    "struct<a: string, b?: double>": ('{"a":"x"}', '{"b":1,"a":"12"}', '{"a":"}","b":null,"c":[1]}'),
}
ODD_TEXTS = (
    *(
        "null",
        "12.5",
        '"12.5"',
        "1.0",
        "1e0",
        "3000000000",
        "9" * 30,
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "01",
        "+1",
    ),
    *(
        ".5",
        "1.",
        "true",
        '"true"',
        "[]",
        "[null]",
        "[1]",
        '["1"]',
        "[true]",
        '[{"a":1}]',
        "{}",
        '{"a":{"b":[1]}}',
    ),
    *(
        "'x'",
        '"\\ud800"',
        '"\\udc00x"',
        '"a\tb"',
        '"\\q"',
        '"open',
        "nul",
        "",
        "[" * 150 + "]" * 150,
        '"NaN"',
        '"Infinity"',
    ),
    *(
        '{"a":1}',
        '{"a":"x","b":"1"}',
        '{"b":1}',
        '{"a":null}',
        '{"a":{}}',
        '{"k":1,"k":"v"}',
        '{"k":"v","k":"w"}',
    ),
    *('"1,5"', "1.005", '"+1"', '" 1"', '"1e2"', '"01"', '"1."', "12345678.9"),
    *("1700000000", "1700000000000000", '"2026-01-31T10:00:00"', '"yesterday"', "\\u0031", '"\\u0031"'),
)
KNOWN_PAIRS = (
    b'{"a":"x","b":1.5,"t":5,"extra":1}',
    b'{"a":"x","b":"12.5","t":5}',
    b'{"a":12.5,"b":1,"t":5}',
    b'{"a":"12.5","b":1,"t":5}',
    b'{"a":"x","b":NaN,"t":5}',
    b"{'a':'x','b':1,'t':5}",
    b'{"a":"x","b":1,"t":5} ',
    b'{"a":"x","b":1,"t":5}\n',
    b'{"a":"x","b":1,"t":5} tail',
    b'{"a":"x","b":1,"t":5}{"a":"y","b":1,"t":6}',
    b'{"a":"x","b":1,"t":5}}',
    b'{"a":"x","b":1,"t":5}]',
    b'{"a":"x","b":1,"t":5},',
    b'{"a":"x","b":1,"t":5},"_":{}',
    b'{"a":"x","b":1,"t":5}],[{}',
    b'{"a":1,"a":"x","b":1,"t":5}',
    b'{"a":"x","a":1,"b":1,"t":5}',
    b'{"a":"5","x":{"a":"5"},"a":5,"b":1,"t":5}',
    b'{"\\u0061":5,"x":{"a":"5"},"b":1,"t":5}',
    b'{"x\\"a":"5","\\u0061":5,"b":1,"t":5}',
    b'{"a":null,"b":1,"t":5}',
    b'{"a":"x","b":1,"b":null,"t":5}',
    b'{"a":"\xff","b":1,"t":5}',
    b'{"a":"x","u":"\xff","b":1,"t":5}',
    b'{"a":"x","\xff":1,"b":1,"t":5}',
    b'\xef\xbb\xbf{"a":"x","b":1,"t":5}',
    b'[{"a":"x","b":1,"t":5}]',
    b'"text"',
    b"12",
    b"null",
    b"not json",
    b"",
    b" ",
    b"\x00",
    b"{}",
)


def test_the_stream_judges_as_the_producer(spark: "SparkSession"):
    rng = random.Random(17)
    contracts = [make_contract(rng, number) for number in range(10)]
    contracts += [make_contract(rng, number, encoding) for number, encoding in enumerate(ENCODINGS, start=10)]
    records = {
        contract.topic: [
            wrap_record(rng, contract, make_record(rng, contract)) for _ in range(RECORDS_PER_CONTRACT)
        ]
        for contract in contracts
    }
    pairs = make_pairs_contract()
    contracts.append(pairs)
    records[pairs.topic] = list(KNOWN_PAIRS)
    expected = {
        (contract.topic, offset): judge_in_python(contract, value)
        for contract in contracts
        for offset, value in enumerate(records[contract.topic])
    }
    sources = [TopicInput(contract).to_source(None) for contract in contracts]
    schemas = {contract.topic: ReadableSchemas(find_schema_of(contract)) for contract in contracts}
    found = parse_in_spark(spark, sources, records, schemas, with_judge=True)
    wrong = {
        (key, records[key[0]][key[1]][:200]): (expected[key], found[key])
        for key in expected
        if not is_same(expected[key], found[key])
    }
    assert not wrong
    assert not any(is_same(UNPROVEN, verdict) for verdict in found.values())

    without_python = parse_in_spark(spark, sources, records, schemas, with_judge=False)
    proven = [key for key, verdict in without_python.items() if verdict != UNPROVEN]
    assert all(is_same(expected[key], without_python[key]) for key in proven)
    valid_count = sum(not isinstance(verdict, str) for verdict in expected.values())
    proven_count = sum(not isinstance(without_python[key], str) for key in proven)
    assert (valid_count > 1_000, proven_count > 0.4 * valid_count) == (True, True), (
        valid_count,
        proven_count,
    )


def test_a_batch_with_valid_suspects_is_read_again_with_the_judge(spark: "SparkSession"):
    values = [
        b'{"a":"x","b":1,"t":1}',
        b'{"a":12,"a":"y","b":"2","b":2,"t":2}',
        b'{"a":"z","b":"12.5","t":3}',
        b'{"a":"w","b":4,"t":4,"u":' + b"[" * 200 + b"]" * 200 + b"}",
    ]
    rows = [(None, bytearray(value), "pairs", 0, offset, None) for offset, value in enumerate(values)]
    plan = (
        read(make_pairs_contract())
        .window(fixed("1 minute"))
        .aggregate(total=sum_("b"))
        .write("totals")
        .to_plan("totals")
    )
    stage = compile_stage(
        plan.only_stage, FieldTypeResolver(spark).resolve_stage(plan.sources, plan.only_stage)
    )
    batch = SparkBatchInput(
        spark.createDataFrame(rows, KAFKA_SOURCE_DDL),
        plan.sources,
        stage,
        10,
        (OffsetRange("pairs", 0, 0, 4),),
    )
    with pytest.raises(UnprovenRecordsError):
        batch.compute_partials()
    partials = batch.compute_partials().to_pylist()
    assert {row["_fate"]: row["_counted"] for row in partials} == {None: 3, "quarantined": 1}
    (invalid,) = batch.read_invalid_records().to_pylist()
    assert (invalid["offset"], invalid["reason"]) == (2, "wrong_type:b")
    assert batch.judge_mode.is_on


def test_the_producer_reports_what_the_judge_says():
    rng = random.Random(3)
    for number in range(20):
        contract = make_contract(rng, number)
        values = [make_record(rng, contract) for _ in range(200)]
        invalid = create_record_format(contract).checker.check(SourceBatch(values)).invalid
        for index, value in enumerate(values):
            verdict = judge_in_python(contract, value)
            assert (index in invalid) == isinstance(verdict, str)
            if isinstance(verdict, str):
                assert invalid[index].reason == verdict


def make_pairs_contract() -> Contract:
    fields = (
        ContractField("a", "string", ""),
        ContractField("b", "double", "", required=False),
        ContractField("t", "timestamp", ""),
    )
    return Contract("pairs", "", fields, event_time="t")


def make_contract(rng: random.Random, number: int, encoding: str = "json") -> Contract:
    """Return a contract whose fields have names of their own, so that one job reads all topics."""
    types = [rng.choice(TYPES) for _ in range(rng.randint(1, 6))]
    fields = [
        ContractField(f"f{number}_{index}", field_type, "", required=rng.random() < 0.6)
        for index, field_type in enumerate(types)
    ]
    event_time = ContractField(f"t{number}", rng.choice(("timestamp", "timestamp(iso8601)")), "")
    return Contract(
        f"topic{number}",
        "",
        (*fields, event_time, *(ENVELOPE_FIELDS if encoding == "debezium" else ())),
        event_time=event_time.name,
        encoding=encoding,
        deletes=rng.choice(get_args(DeletePolicy)) if encoding == "debezium" else None,
        envelope=ENVELOPE if encoding == "debezium" else (),
        unknown_fields=rng.choice(
            POLICIES if find_record_format(encoding).keeps_unknown_fields else ("ignore",)
        ),
    )


def wrap_record(rng: random.Random, contract: Contract, value: bytes) -> bytes:
    """Return the JSON of a record in the format of its topic, sometimes damaged."""
    if contract.encoding == "json":
        return value
    if contract.encoding == "debezium":
        return wrap_row(rng, value)
    if contract.encoding == "protobuf":
        value = encode_message(rng, contract, value)
    header = b"\0\0\0\0\1" if rng.random() < 0.95 else rng.choice((b"", b"\0", b"\0\0\0\0\2", b"\1\0\0\0\1"))
    return header + value


def encode_message(rng: random.Random, contract: Contract, value: bytes) -> bytes:
    """Return the message of a valid record, sometimes damaged, without its header."""
    schemas = find_schema_of(contract)
    codec = find_record_format("protobuf").create_codec(contract, 1, schemas.get)
    try:
        encoded = codec.encode(json_codec(contract).decode(value))[5:]
    except InvalidRecordError:
        return value  # JSON is damaged Protobuf
    match rng.randrange(8):
        case 0:
            position = rng.randrange(len(encoded))
            return encoded[:position] + bytes([rng.randrange(256)]) + encoded[position + 1 :]
        case 1:
            return encoded[: rng.randrange(len(encoded))]
        case _:
            return encoded


def wrap_row(rng: random.Random, row: bytes) -> bytes:
    """Return an event of Debezium, sometimes with a `schema` part, sometimes of no changed row."""
    operation = rng.choice((*[b'"c"'] * 12, b'"r"', b'"u"', b'"d"', b'"t"', b"1"))
    before, after = (row, b"null") if operation == b'"d"' else (b"null", row)
    envelope = b'{"before":%b,"after":%b,"source":{"ts_ms":7,"db":"shop"},"op":%b,"ts_ms":8}' % (
        before,
        after,
        operation,
    )
    match rng.randrange(20):
        case 0:
            return row
        case 1:
            return rng.choice((b'{"schema":null,"payload":null}', b'{"op":"c"}', b'{"payload":[]}'))
        case 2 | 3 | 4:
            return b'{"schema":{"type":"struct"},"payload":%b}' % envelope
        case _:
            return envelope


def find_schema_of(contract: Contract) -> Mapping[int, Schema]:
    return {1: find_record_format(contract.encoding).to_schema(contract)}


def make_record(rng: random.Random, contract: Contract) -> bytes:
    members = [
        [field.name, rng.choice(VALID_TEXTS[field.type])]
        for field in contract.fields
        if field.required or rng.random() < 0.8
    ]
    if rng.random() < 0.4:
        rng.choice(members)[1] = rng.choice(ODD_TEXTS)
    if rng.random() < 0.15:
        members.append(
            [rng.choice(["x", contract.fields[0].name.upper(), "unknown_fields"]), rng.choice(ODD_TEXTS)]
        )
    if rng.random() < 0.1:
        members.append([rng.choice(members)[0], rng.choice(ODD_TEXTS)])
    if rng.random() < 0.1:
        members.pop(rng.randrange(len(members)))
    if rng.random() < 0.5:
        rng.shuffle(members)
    comma, colon = rng.choice(((",", ":"), (", ", ": ")))
    text = "{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}"
    value = text.encode("utf-8", "surrogatepass")
    match rng.randrange(25):
        case 0:
            return value + rng.choice((b" ", b"x", b"{}", b"}", b"]", b",1", b"\n", b"\x00"))
        case 1:
            position = rng.randrange(len(value))
            return value[:position] + bytes([rng.randrange(256)]) + value[position + 1 :]
        case 2:
            return value[: rng.randrange(len(value))]
        case _:
            return value


def judge_in_python(contract: Contract, value: bytes) -> str | dict[str, Any]:
    judge, schemas = json_codec(contract).judge, find_schema_of(contract)
    record_format = find_record_format(contract.encoding)
    try:
        record = record_format.create_codec(contract, 1, schemas.get).decode(value)
        json_value = record_format.open_reader(to_record_rules(contract), schemas.get)(value)
        canonical = json.loads(judge.to_canonical_json(json_value))
    except InvalidRecordError as error:
        return error.reason
    except IgnoredRecordError:
        return IGNORED
    stored = {field.name: to_stored(field, getattr(record, field.name)) for field in contract.fields}
    if contract.unknown_fields == "keep":
        stored[UNKNOWN_FIELDS_COLUMN] = canonical.get(UNKNOWN_FIELDS_COLUMN)
    return stored


def to_stored(field: ContractField, value: Any) -> Any:
    """Return a decoded value as the stream stores it."""
    if value is None:
        return None
    if field.type == "float":
        with np.errstate(over="ignore"):  # what is too large is infinite
            return float(np.float32(float(value)))
    if field.type in ("double", "array<double>"):
        return read_special_numbers(msgspec.to_builtins(value))
    if isinstance(value, Decimal):
        return value
    if field.parsed_type.is_timestamp:
        return field.parsed_type.to_epoch_ms(value)
    if field.type.startswith("struct"):
        return {"b": None, **msgspec.to_builtins(value)}
    return msgspec.to_builtins(value)


def read_special_numbers(value: Any) -> Any:
    """Return a number, or a list of numbers, with the texts of NaN and infinity as numbers."""
    if isinstance(value, list):
        return [read_special_numbers(item) for item in value]
    return float(value) if isinstance(value, str) else value


def parse_in_spark(
    spark: "SparkSession",
    sources: list[PlanSource],
    records: Mapping[str, list[bytes]],
    schemas: WriterSchemas,
    *,
    with_judge: bool,
) -> dict[tuple[str, int], str | dict[str, Any]]:
    rows = [
        (None, bytearray(value), topic, 0, offset, None)
        for topic, values in records.items()
        for offset, value in enumerate(values)
    ]
    raw = spark.createDataFrame(rows, KAFKA_SOURCE_DDL)
    names = {source.name: [column.name for column in source.record_columns] for source in sources}
    return {
        (row["_topic"], row["_offset"]): row["_invalid"] or read_fields(row, names[row["_topic"]])
        for row in parse_records(raw, sources, schemas, with_judge=with_judge).collect()
    }


def read_fields(row: Row, names: list[str]) -> dict[str, Any]:
    return {name: to_plain(row[name]) for name in names}


def to_plain(value: Any) -> Any:
    return value.asDict(recursive=True) if isinstance(value, Row) else value


def is_same(expected: object, found: object) -> bool:
    match expected, found:
        case float(), float():
            is_equal = expected == found or (math.isnan(expected) and math.isnan(found))
            return is_equal and math.copysign(1, expected) == math.copysign(1, found)
        case dict(), dict():
            return expected.keys() == found.keys() and all(
                is_same(expected[key], found[key]) for key in expected
            )
        case list(), list():
            return len(expected) == len(found) and all(map(is_same, expected, found))
        case _:
            return expected == found
