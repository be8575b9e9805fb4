"""Values of every type, from JSON and Avro to the stored column, compared with those of the test data."""

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.ingestion.contracts.format_contracts import (
    FORMATS,
    make_format_codec,
    make_schemas,
    without_empty_parts,
)
from tests.ingestion.contracts.typed_values import ALL_MAKERS, TypedValue

from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse.record_parser import WriterSchemas
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL, parse_records
from penstock.ingestion.contracts import Contract, ContractField, json_codec
from penstock.ingestion.registry import ReadableSchemas
from penstock.stream.input_specs import TopicInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RECORDS = 300
FIELD_NAMES = {type_text: f"f{number}" for number, type_text in enumerate(ALL_MAKERS)}


def make_contract(encoding: str) -> Contract:
    """Return a contract with an optional field of each type."""
    fields = [ContractField(name, text, "F.", required=False) for text, name in FIELD_NAMES.items()]
    event_time = ContractField("at", "timestamp(iso8601)", "A.")
    deletes = "ignore" if encoding == "debezium" else None
    return Contract("types", "T.", (event_time, *fields), event_time="at", encoding=encoding, deletes=deletes)


def make_rows() -> list[dict[str, TypedValue]]:
    rng = random.Random(66)
    return [
        {
            "at": ALL_MAKERS["timestamp(iso8601)"](rng),
            **{name: ALL_MAKERS[text](rng) for text, name in FIELD_NAMES.items() if rng.random() < 0.8},
        }
        for _ in range(RECORDS)
    ]


def read_stored(
    spark: "SparkSession", source: PlanSource, values: list[bytes], schemas: WriterSchemas
) -> list[dict[str, Any]]:
    rows = [(None, value, "types", 0, offset, None) for offset, value in enumerate(values)]
    raw = spark.createDataFrame(rows, KAFKA_SOURCE_DDL)
    records = parse_records(raw, (source,), schemas, with_judge=True)
    return [row.asDict(recursive=True) for row in records.orderBy("_offset").collect()]


@pytest.mark.parametrize("encoding", FORMATS)
def test_a_value_of_each_type_is_stored_as_it_was_written(spark: "SparkSession", encoding: str) -> None:
    contract, rows = make_contract(encoding), make_rows()
    texts = [json.dumps({name: value.member for name, value in row.items()}).encode() for row in rows]
    decoded = [json_codec(contract).decode(text) for text in texts]
    schemas, codec = make_schemas(contract), make_format_codec(contract)
    values = texts if encoding == "json" else [codec.encode(record) for record in decoded]
    source = TopicInput(contract).to_source(None)
    stored = read_stored(spark, source, values, {"types": ReadableSchemas(schemas)})
    assert {row["_invalid"] for row in stored} == {None}
    assert [row["_time"] for row in stored] == [row["at"].stored for row in rows]
    for type_text, name in FIELD_NAMES.items():
        expected = [row[name].stored if name in row else None for row in rows]
        found = [row[name] for row in stored]
        if encoding == "protobuf":
            expected, found = (
                [without_empty_parts(value) for value in values] for values in (expected, found)
            )
        assert found == expected, type_text
