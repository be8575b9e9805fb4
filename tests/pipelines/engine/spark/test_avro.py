"""Spark decodes and refuses Avro records as the ingestion codec does."""

import dataclasses
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pytest
from tests.ingestion.registry_server import run_registry_server
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.errors import DefinitionError
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL, parse_records
from penstock.engine.spark.parse.writer_schemas import load_writer_schemas, refuse_unknown_schemas
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, ContractField
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.errors import InvalidRecordError, RegistryError
from penstock.ingestion.registry import FileRegistry, WriterSchemaCache, open_registry, register_contract
from penstock.stream import count, fixed, read, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CONTRACT = Contract(
    topic="sounds",
    doc="One field of each type.",
    fields=(
        ContractField("id", "string", "."),
        ContractField("at", "timestamp", "."),
        ContractField("loud", "double", "."),
        ContractField("whole", "boolean", ".", required=False),
        ContractField("few", "int", ".", required=False),
        ContractField("many", "long", ".", required=False),
        ContractField("near", "float", ".", required=False),
        ContractField("words", "array<string>", ".", required=False),
        ContractField("grid", "array<array<int>>", ".", required=False),
    ),
    key="id",
    event_time="at",
    encoding="avro",
)
EARLIER_CONTRACT = dataclasses.replace(CONTRACT, fields=CONTRACT.fields[:5])


def make_record(rng: random.Random, number: int) -> dict[str, Any]:
    """Return a random record of the contract; optional fields are sometimes absent."""
    texts = ["", "a", "ö", "\U0001f600" * 3, "x" * 300]
    optional: dict[str, Any] = {
        "whole": rng.random() < 0.5,
        "few": rng.choice([-(2**31), 0, 2**31 - 1]),
        "many": rng.choice([-(2**63), 7, 2**63 - 1]),
        "near": rng.choice([0.5, -1e30]),
        "words": [rng.choice(texts) for _ in range(rng.randrange(4))],
        "grid": [[number] * rng.randrange(3) for _ in range(rng.randrange(3))],
    }
    present = {name: value for name, value in optional.items() if rng.random() < 0.7}
    return {"id": rng.choice(texts), "at": number * 1000, "loud": number / 4, **present}


def corrupt_ends(rng: random.Random, value: bytes) -> bytes:
    """Return a value that is cut, extended, or has another header."""
    config = rng.randrange(len(value))
    return rng.choice([value[:config], value + rng.randbytes(3), rng.randbytes(4) + value[4:]])


def change_byte(rng: random.Random, value: bytes) -> bytes:
    """Return a value with one byte after the header changed or removed."""
    config = rng.randrange(5, len(value))
    return value[:config] + rng.randbytes(rng.randrange(2)) + value[config + 1 :]


def make_codecs(registry: FileRegistry) -> tuple[AvroCodec, AvroCodec]:
    """Return codecs of the earlier and the newest contract; the second reads both."""
    return tuple(  # type: ignore[return-value]
        AvroCodec(contract, register_contract(registry, contract).id, registry.find_schema)
        for contract in (EARLIER_CONTRACT, CONTRACT)
    )


def test_spark_and_the_codec_accept_the_same_records(spark: "SparkSession", tmp_path: Path) -> None:
    rng, registry = random.Random(7), FileRegistry(tmp_path)
    old_codec, new_codec = make_codecs(registry)
    valid = [codec.encode(each) for codec in (old_codec, new_codec) for each in make_records_for(rng, codec)]
    huge_lengths = [b"\0\0\0\0\2\xfe\xff\xff\xff\x0d", b"\0\0\0\0\2\2a\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"]
    cases = [
        *valid,
        *(corrupt_ends(rng, value) for value in valid for _ in range(3)),
        b"",
        b"{}",
        b"\0",
        *huge_lengths,
    ]
    found = parse_in_spark(spark, registry, cases)
    results = zip(cases, found, (decode_by_codec(new_codec, value) for value in cases), strict=True)
    differences = [(value.hex(), ours, theirs) for value, ours, theirs in results if ours != theirs]
    assert differences == []


def test_a_record_with_a_changed_byte_is_decoded_alike_or_refused(
    spark: "SparkSession", tmp_path: Path
) -> None:
    # No encoder writes these, and the two decoders differ on them: a number with more bits than its type, a union
    # branch below zero, and a boolean that is neither 0 nor 1, so the boolean field is left out.
    rng, registry = random.Random(8), FileRegistry(tmp_path)
    old_codec, new_codec = make_codecs(registry)
    valid = [codec.encode(each) for codec in (old_codec, new_codec) for each in make_records_for(rng, codec)]
    cases = [change_byte(rng, value) for value in valid for _ in range(3)]
    found = parse_in_spark(spark, registry, cases)
    results = [
        ({**by_spark, "whole": None}, {**by_codec, "whole": None})
        for value, by_spark in zip(cases, found, strict=True)
        if isinstance(by_spark, dict) and isinstance(by_codec := decode_by_codec(new_codec, value), dict)
    ]
    assert len(results) > len(cases) / 4
    # Compared as text, because NaN is not equal to itself.
    assert [pair for pair in results if repr(pair[0]) != repr(pair[1])] == []


def make_records_for(rng: random.Random, codec: AvroCodec) -> list[dict[str, Any]]:
    """Return records with the fields of a codec's contract."""
    names = {each.name for each in codec.contract.fields}
    records = (make_record(rng, number) for number in range(400))
    return [{name: value for name, value in each.items() if name in names} for each in records]


def parse_in_spark(
    spark: "SparkSession", registry: FileRegistry, values: list[bytes]
) -> list[dict[str, Any] | str]:
    """Parse values in Spark; return the fields of each, or why it is invalid."""
    plan = build_plan(CONTRACT)
    rows = [(None, value, "sounds", 0, offset, None) for offset, value in enumerate(values)]
    writers = load_writer_schemas(plan.sources, WriterSchemaCache(lambda: registry).find_readable)
    found = (
        parse_records(spark.createDataFrame(rows, KAFKA_SOURCE_DDL), plan.sources, writers)
        .sort("_offset")
        .collect()
    )
    names = [field.name for field in CONTRACT.fields]
    return [row["_invalid"] or {name: row[name] for name in names} for row in found]


def test_a_tombstone_marks_its_key_as_deleted(spark: "SparkSession", tmp_path: Path) -> None:
    registry = FileRegistry(tmp_path)
    codec = AvroCodec(CONTRACT, register_contract(registry, CONTRACT).id, registry.find_schema)
    plan = build_plan(CONTRACT, tombstones="deleted")
    value = codec.encode({"id": "a", "at": 1, "loud": 1.0})
    arrived = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        (b"a", value, "sounds", 0, 0, arrived),
        (b"a", None, "sounds", 0, 1, arrived),
        (None, None, "sounds", 0, 2, arrived),
    ]
    writers = load_writer_schemas(plan.sources, WriterSchemaCache(lambda: registry).find_readable)
    found = parse_records(spark.createDataFrame(rows, KAFKA_SOURCE_DDL), plan.sources, writers).sort(
        "_offset"
    )
    assert [tuple(row) for row in found.select("id", "_time", "loud", "deleted", "_invalid").collect()] == [
        ("a", 1, 1.0, None, None),
        ("a", int(arrived.timestamp() * 1000), None, True, None),
        (None, int(arrived.timestamp() * 1000), None, True, "no_value"),
    ]


def test_the_name_of_a_tombstone_field_is_checked() -> None:
    with pytest.raises(DefinitionError, match="letters, digits and _"):
        build_plan(CONTRACT, tombstones="is deleted")


def decode_by_codec(codec: AvroCodec, value: bytes) -> dict[str, Any] | str:
    """Decode a value; return its fields, or why it is invalid."""
    try:
        fields: dict[str, Any] = msgspec.structs.asdict(codec.decode(value))
    except InvalidRecordError as error:
        return error.reason
    return {name: None if field is msgspec.UNSET else field for name, field in fields.items()}


def build_plan(contract: Contract, **options: str) -> Plan:
    keyed = read(contract, max_out_of_orderness="1 second", **options).key("id").window(fixed("10 seconds"))
    return keyed.aggregate(n=count(), loud=sum_("loud")).write("loudness", mode="latest").plan


def test_a_schema_may_change_while_the_stream_runs(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    contract = dataclasses.replace(CONTRACT, topic=f"sounds{uuid4().hex[:8]}")
    earlier = dataclasses.replace(contract, fields=EARLIER_CONTRACT.fields)
    broker.create_topic(contract.topic, 1)
    with run_registry_server(tmp_path / "registry") as url:
        schemas = WriterSchemaCache(lambda: open_registry(url)).find_readable
        runner = StreamRunner(build_plan(contract), spark, broker, tmp_path, schemas=schemas)
        registry = open_registry(url)
        first = AvroCodec(earlier, register_contract(registry, earlier).id, registry.find_schema)
        stream = runner.start()
        try:
            records = [{"id": name, "at": at, "loud": 0.5} for at in (0, 9_999, 20_000) for name in "ab"]
            send(broker, contract.topic, [*map(first.encode, records), b"\0\0\0\0\2ab", None])
            runner.progress.wait_for(8, stream)
            second = AvroCodec(contract, register_contract(registry, contract).id, registry.find_schema)
            later = [
                {"id": "b", "at": 15_000, "loud": 1.0, "words": ["w"]},
                {"id": "c", "at": 30_000, "loud": 2.0},
                {"id": "end", "at": 100_000, "loud": 0.0},
            ]
            send(broker, contract.topic, map(second.encode, later))
            runner.progress.wait_for(11, stream)
        finally:
            stream.drain()
    reasons = query_duckdb(
        'SELECT "offset", reason FROM t ORDER BY ALL', t=runner.table(f"quarantine/{contract.topic}")
    )
    assert reasons == [(6, "wrong_schema"), (7, "no_value")]
    stored = TopicSource(spark, contract.topic, BrokerAccess(broker.bootstrap))
    config = BoundedRunConfig(tmp_path / "bounded", tmp_path / "again", schema_lookup=schemas)
    run_bounded(runner.plan, spark, stored, config, lambda: 1_000_000)
    bounded = dataclasses.replace(runner, warehouse_override=tmp_path / "again")
    values = "SELECT id, epoch_ms(window_start), n, loud FROM t WHERE id <> 'end' ORDER BY ALL"
    expected = [("a", 0, 2, 1.0), ("a", 20_000, 1, 0.5), ("b", 0, 2, 1.0), ("b", 10_000, 1, 1.0)]
    expected += [("b", 20_000, 1, 0.5), ("c", 30_000, 1, 2.0)]
    for run in (runner, bounded):
        assert query_duckdb(values, t=run.table("latest/loudness")) == expected


def test_only_unknown_schemas_need_the_registry(spark: "SparkSession", tmp_path: Path) -> None:
    with run_registry_server(tmp_path) as url:
        schemas = WriterSchemaCache(lambda: open_registry(url)).find_readable
        registry = FileRegistry(tmp_path)
        old_codec = AvroCodec(
            EARLIER_CONTRACT, register_contract(registry, EARLIER_CONTRACT).id, registry.find_schema
        )
        plan = build_plan(CONTRACT)
        assert list(load_writer_schemas(plan.sources, schemas)["sounds"].schemas) == [1]
    new_codec = AvroCodec(CONTRACT, register_contract(registry, CONTRACT).id, registry.find_schema)

    def to_frame(*values: bytes) -> Any:
        rows = [(None, value, "sounds", 0, offset, None) for offset, value in enumerate(values)]
        return spark.createDataFrame(rows, KAFKA_SOURCE_DDL)

    cached = load_writer_schemas(plan.sources, schemas)
    known = {"id": "a", "at": 1, "loud": 1.0}
    refuse_unknown_schemas(to_frame(old_codec.encode(known), b"{}"), cached)
    with pytest.raises(
        RegistryError,
        match=r"schema 2, which is not cached. The request .* registry at .* failed",
    ):
        refuse_unknown_schemas(to_frame(old_codec.encode(known), new_codec.encode(known)), cached)
    with pytest.raises(RegistryError, match="Check that it is up"):
        WriterSchemaCache(lambda: open_registry(url)).find_readable("sounds", CONTRACT.fields, "avro")
