"""The strict parser reads only records that the judge accepts, with the same values, and reads most of those."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.engine.spark.test_one_judge import (
    is_same,
    judge_in_python,
    make_record,
    parse_in_spark,
)

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.spark.parse import parser_selection
from penstock.engine.spark.parse.parser_selection import make_parsers
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL
from penstock.engine.spark.parse.strict_json_parser import StrictJsonParser
from penstock.engine.spark.parse.suspects import UNPROVEN
from penstock.ingestion.contracts import Contract, ContractField
from penstock.stream.input_specs import TopicInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FLAT_TYPES = ("string", "int", "long", "double", "float", "boolean", "timestamp", "decimal(9, 2)")
"""The types whose stored value is what the parser reads."""
NUMBERS = (
    *("0", "-0", "0.0", "-0.0", "1.5", "123456789012345", "1234567890123456", "0.1", "4503599627370497.5"),
    *("999999999999999999", "1000000000000000000", "9223372036854775808", "-9223372036854775809"),
    *("18446744073709551616", "-18446744073709551616", "2147483648", "-2147483649", "1E3", "1e-400", "1e400"),
    *(
        "1.7976931348623157e308",
        "4.9e-324",
        "2.2250738585072011e-308",
        "9007199254740993",
        "0.30000000000000004",
    ),
    *("3.4028236e38", "1.1754943e-38", "00", "-", "1.e3", "1e", "1e+", "--1", "0x10", "1_000", "1.005"),
)
STRINGS = (
    *('""', '"\\""', '"\\\\"', '"\\/\\b\\f\\n\\r\\t"', '"\\u0000"', '"\\u00e9\\u20ac"', '"\\ud83d\\ude00"'),
    *('"\\ud83d"', '"\\ude00"', '"\\ud83dx"', '"\\ud83d\\u0041"', '"\\u12"', '"\\uGGGG"', '"\\x"', '"\\'),
    *('"\x7f"', '"\x1f"', '"\n"', '"é€😀"', '"\u2028"', '"x" "y"', "'x'"),
)
BAD_UTF8 = (b"\x80", b"\xc0\xaf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88", b"\xc3")
GOOD_UTF8 = tuple(
    text.encode() for text in ("\x80", "\u07ff", "\u0800", "\ud7ff", "\uffff", "\U00010000", "\U0010ffff")
)
DEEP = tuple(b'{"s":"x","t":1,"u":' + b"[" * depth + b"]" * depth + b"}" for depth in (3, 32, 33, 200))
UNKNOWN = (
    '{"a":[1,{"b":"}"}],"a":2}',
    '"\\ud800"',
    "1e999",
    "01",
    "[1,]",
    "[,]",
    "{,}",
    '{"a"}',
    "tru",
    "nulls",
)


def make_flat_contract(rng: random.Random, number: int) -> Contract:
    types = [rng.choice(FLAT_TYPES) for _ in range(rng.randint(1, 6))]
    fields = [
        ContractField(f"f{number}_{index}", name, "", required=rng.random() < 0.5)
        for index, name in enumerate(types)
    ]
    event_time = ContractField(f"t{number}", "timestamp", "")
    policy = rng.choice(("ignore", "ignore", "keep", "refuse"))
    return Contract(
        f"flat{number}", "", (*fields, event_time), event_time=event_time.name, unknown_fields=policy
    )


def make_edge_contract() -> Contract:
    fields = [
        ContractField(name, field_type, "", required=False)
        for name, field_type in {
            "s": "string",
            "i": "int",
            "l": "long",
            "d": "double",
            "f": "float",
            "b": "boolean",
            "m": "decimal(9, 2)",
            "h": "decimal(38, 2)",
        }.items()
    ]
    return Contract("edges", "", (*fields, ContractField("t", "timestamp", "")), event_time="t")


def list_edge_records() -> list[bytes]:
    numbers = [f'{{"{name}":{text},"t":1}}' for name in "ildfmh" for text in NUMBERS]
    quoted = [
        f'{{"{name}":"{text}","t":1}}'
        for name in "mh"
        for text in (*NUMBERS, "1,5", ",5", " 1", "+1", "\u0661\u0662", "1f")
    ]
    strings = [f'{{"s":{text},"t":1}}' for text in STRINGS]
    members = [f'{{"s":"x","t":1,"u":{text}}}' for text in (*UNKNOWN, *NUMBERS, *STRINGS)]
    names = [f'{{{name}:1,"t":1}}' for name in ('"\\u0064"', '"é"', '""', '"_corrupt"', '"T"', '"\\"', "d")]
    shapes = [
        *(
            "",
            " ",
            "{",
            "{}",
            "[]",
            "null",
            '{"t":1',
            '{"t":1,}',
            '{,"t":1}',
            '{"t" 1}',
            '{"t"::1}',
            '{"t":1}}',
        ),
        *(
            ' \t\r\n{ "t" : 1 , "b" : true } \n',
            '{"t":1}\x00',
            '\ufeff{"t":1}',
            '{"t":1,"t":2}',
            '{"t":1,"b":nullx}',
        ),
        *('{"t":1,"b":truE}', '{"t":1,"d":"NaN"}', '{"t":1,"d":"1.5"}', '{"t":null}', '{"s":12,"t":1}'),
    ]
    utf8 = [
        prefix + part + b'"}'
        for part in (*BAD_UTF8, *GOOD_UTF8)
        for prefix in (b'{"t":1,"s":"', b'{"t":1,"u":"')
    ]
    texts = [*numbers, *quoted, *strings, *members, *names, *shapes]
    return [*(text.encode("utf-8", "surrogatepass") for text in texts), *utf8, *DEEP]


def test_what_the_parser_reads_is_what_the_judge_reads(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
):
    rng = random.Random(76)
    contracts = [make_flat_contract(rng, number) for number in range(12)]
    records = {each.topic: [make_record(rng, each) for _ in range(500)] for each in contracts}
    contracts.append(make_edge_contract())
    records["edges"] = list_edge_records()
    expected = {
        (contract.topic, offset): judge_in_python(contract, value)
        for contract in contracts
        for offset, value in enumerate(records[contract.topic])
    }
    sources = [TopicInput(contract).to_source(None) for contract in contracts]
    parsed = list_strict_addresses(spark, sources, records)
    valid = {address for address, verdict in expected.items() if not isinstance(verdict, str)}
    assert len(parsed & valid) > 0.7 * len(valid)

    found = parse_in_spark(spark, sources, records, {}, with_judge=False)
    assert not find_differences(records, expected, found)
    assert all(found[address] != UNPROVEN for address in parsed & valid)
    monkeypatch.setattr(parser_selection, "find_parser_class", lambda _: None)
    without_parser = parse_in_spark(spark, sources, records, {}, with_judge=False)
    assert not find_differences(records, expected, without_parser)


def find_differences(records: Any, expected: Any, found: Any) -> list[Any]:
    return [
        (records[topic][offset], expected[topic, offset], verdict)
        for (topic, offset), verdict in found.items()
        if verdict != UNPROVEN and not is_same(expected[topic, offset], verdict)
    ]


def list_strict_addresses(
    spark: "SparkSession", sources: Sequence[Any], records: Any
) -> set[tuple[str, int]]:
    rows = [
        (None, bytearray(value), topic, 0, offset, None)
        for topic, values in records.items()
        for offset, value in enumerate(values)
    ]
    frame, strict_columns = spark.createDataFrame(rows, KAFKA_SOURCE_DDL), []
    for source, parser in zip(sources, make_parsers(spark, sources, {}), strict=True):
        assert isinstance(parser, StrictJsonParser)
        of_topic = f"CASE WHEN topic = '{topic_of(source)}' THEN {{}} END".format
        frame = frame.withColumns(dict(parser.early_columns(spark, of_topic)))
        strict_columns.append(parser.strict_column)
    condition = " OR ".join(f"{column} IS NOT NULL" for column in strict_columns)
    return {
        (row["topic"], row["offset"]) for row in frame.where(condition).select("topic", "offset").collect()
    }
