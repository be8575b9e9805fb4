"""Topics in Avro: Spark reads what the codec of ingestion reads, and refuses what it refuses."""

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
from penstock.engine.plan import Plan
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.parse.avro import load_writer_schemas, refuse_unknown_schemas
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL, parse_records
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, ContractField
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.errors import InvalidRecordError, RegistryError
from penstock.ingestion.registry import FileRegistry, WriterSchemaCache, open_registry, register_contract
from penstock.stream import count, fixed, read, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

HEARD = Contract(
    topic="heard",
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
EARLIER = dataclasses.replace(HEARD, fields=HEARD.fields[:5])


def record(chance: random.Random, number: int) -> dict[str, Any]:
    """Any record of the contract; every field that may be absent is, now and then."""
    texts = ["", "a", "ö", "\U0001f600" * 3, "x" * 300]
    whole: dict[str, Any] = {
        "whole": chance.random() < 0.5,
        "few": chance.choice([-(2**31), 0, 2**31 - 1]),
        "many": chance.choice([-(2**63), 7, 2**63 - 1]),
        "near": chance.choice([0.5, -1e30]),
        "words": [chance.choice(texts) for _ in range(chance.randrange(4))],
        "grid": [[number] * chance.randrange(3) for _ in range(chance.randrange(3))],
    }
    some = {name: value for name, value in whole.items() if chance.random() < 0.7}
    return {"id": chance.choice(texts), "at": number * 1000, "loud": number / 4, **some}


def cut(chance: random.Random, value: bytes) -> bytes:
    """A value that ends too early, or too late, or begins otherwise."""
    place = chance.randrange(len(value))
    return chance.choice([value[:place], value + chance.randbytes(3), chance.randbytes(4) + value[4:]])


def changed(chance: random.Random, value: bytes) -> bytes:
    """A value of which one byte behind its head is another, or is missing."""
    place = chance.randrange(5, len(value))
    return value[:place] + chance.randbytes(chance.randrange(2)) + value[place + 1 :]


def codecs(registry: FileRegistry) -> tuple[AvroCodec, AvroCodec]:
    """What encodes by the earlier contract and by the newest; the second reads both."""
    return tuple(  # type: ignore[return-value]
        AvroCodec(contract, register_contract(registry, contract).id, registry.find_schema)
        for contract in (EARLIER, HEARD)
    )


def test_spark_reads_and_refuses_what_the_codec_does(spark: "SparkSession", tmp_path: Path) -> None:
    chance, registry = random.Random(7), FileRegistry(tmp_path)
    old, new = codecs(registry)
    sound = [codec.encode(each) for codec in (old, new) for each in records_for(chance, codec)]
    claims = [b"\0\0\0\0\2\xfe\xff\xff\xff\x0d", b"\0\0\0\0\2\2a\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"]
    cases = [*sound, *(cut(chance, value) for value in sound for _ in range(3)), b"", b"{}", b"\0", *claims]
    found = in_spark(spark, registry, cases)
    both = zip(cases, found, (by_codec(new, value) for value in cases), strict=True)
    assert [(value.hex(), here, there) for value, here, there in both if here != there] == []


def test_a_changed_byte_stops_nothing_and_whoever_reads_the_record_reads_the_same(
    spark: "SparkSession", tmp_path: Path
) -> None:
    # Three things that no encoder writes are read by one of them alone: a number of more bits than its type has, a
    # branch of a union before its first, a truth that is neither 0 nor 1; of the last each makes another.
    chance, registry = random.Random(8), FileRegistry(tmp_path)
    old, new = codecs(registry)
    sound = [codec.encode(each) for codec in (old, new) for each in records_for(chance, codec)]
    cases = [changed(chance, value) for value in sound for _ in range(3)]
    found = in_spark(spark, registry, cases)
    both = [
        ({**here, "whole": None}, {**there, "whole": None})
        for value, here in zip(cases, found, strict=True)
        if isinstance(here, dict) and isinstance(there := by_codec(new, value), dict)
    ]
    assert len(both) > len(cases) / 4
    assert [pair for pair in both if repr(pair[0]) != repr(pair[1])] == []  # as text, for NaN is not itself


def records_for(chance: random.Random, codec: AvroCodec) -> list[dict[str, Any]]:
    """Records of what a codec's contract has."""
    names = {each.name for each in codec.contract.fields}
    made = (record(chance, number) for number in range(400))
    return [{name: value for name, value in each.items() if name in names} for each in made]


def in_spark(
    spark: "SparkSession", registry: FileRegistry, values: list[bytes]
) -> list[dict[str, Any] | str]:
    """What Spark makes of values: the fields of each, or why it is no good."""
    plan = plan_over(HEARD)
    rows = [(None, value, "heard", 0, offset, None) for offset, value in enumerate(values)]
    writers = load_writer_schemas(plan.sources, WriterSchemaCache(lambda: registry).find_readable)
    found = (
        parse_records(spark.createDataFrame(rows, KAFKA_SOURCE_DDL), plan.sources, writers)
        .sort("_offset")
        .collect()
    )
    names = [field.name for field in HEARD.fields]
    return [row["_invalid"] or {name: row[name] for name in names} for row in found]


def test_a_record_without_a_value_says_that_its_key_is_gone(spark: "SparkSession", tmp_path: Path) -> None:
    registry = FileRegistry(tmp_path)
    codec = AvroCodec(HEARD, register_contract(registry, HEARD).id, registry.find_schema)
    plan = plan_over(HEARD, tombstones="gone")
    there = codec.encode({"id": "a", "at": 1, "loud": 1.0})
    came = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        (b"a", there, "heard", 0, 0, came),
        (b"a", None, "heard", 0, 1, came),
        (None, None, "heard", 0, 2, came),
    ]
    writers = load_writer_schemas(plan.sources, WriterSchemaCache(lambda: registry).find_readable)
    found = parse_records(spark.createDataFrame(rows, KAFKA_SOURCE_DDL), plan.sources, writers).sort(
        "_offset"
    )
    assert [tuple(row) for row in found.select("id", "_time", "loud", "gone", "_invalid").collect()] == [
        ("a", 1, 1.0, None, None),
        ("a", int(came.timestamp() * 1000), None, True, None),
        (None, int(came.timestamp() * 1000), None, True, "no_value"),
    ]


def test_what_stands_for_deletions_is_called_as_avro_calls_fields() -> None:
    with pytest.raises(DefinitionError, match="letters, digits and _"):
        plan_over(HEARD, tombstones="is gone")


def by_codec(codec: AvroCodec, value: bytes) -> dict[str, Any] | str:
    """The record by its fields, or why it is no good."""
    try:
        fields: dict[str, Any] = msgspec.structs.asdict(codec.decode(value))
    except InvalidRecordError as error:
        return "wrong_schema" if error.reason == "wrong schema" else "malformed"
    return {name: None if field is msgspec.UNSET else field for name, field in fields.items()}


def plan_over(contract: Contract, **said: str) -> Plan:
    heard = read(contract, max_out_of_orderness="1 second", **said).key("id").window(fixed("10 seconds"))
    return heard.aggregate(n=count(), loud=sum_("loud")).write("loudness", mode="latest").plan


def test_a_schema_may_follow_while_the_stream_runs_and_the_topic_gives_the_same_tables(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    contract = dataclasses.replace(HEARD, topic=f"heard{uuid4().hex[:8]}")
    earlier = dataclasses.replace(contract, fields=EARLIER.fields)
    broker.create_topic(contract.topic, 1)
    with run_registry_server(tmp_path / "registry") as url:
        schemas = WriterSchemaCache(lambda: open_registry(url)).find_readable
        runner = StreamRunner(plan_over(contract), spark, broker, tmp_path, schemas=schemas)
        registry = open_registry(url)
        first = AvroCodec(earlier, register_contract(registry, earlier).id, registry.find_schema)
        stream = runner.start()
        try:
            told = [{"id": name, "at": at, "loud": 0.5} for at in (0, 9_999, 20_000) for name in "ab"]
            send(broker, contract.topic, [*map(first.encode, told), b"\0\0\0\0\2ab", None])
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
    place = BoundedRunConfig(tmp_path / "bounded", tmp_path / "again", schema_lookup=schemas)
    run_bounded(runner.plan, spark, stored, place, lambda: 1_000_000)
    again = dataclasses.replace(runner, warehouse_override=tmp_path / "again")
    values = "SELECT id, epoch_ms(window_start), n, loud FROM t WHERE id <> 'end' ORDER BY ALL"
    expected = [("a", 0, 2, 1.0), ("a", 20_000, 1, 0.5), ("b", 0, 2, 1.0), ("b", 10_000, 1, 1.0)]
    expected += [("b", 20_000, 1, 0.5), ("c", 30_000, 1, 2.0)]
    for made in (runner, again):
        assert query_duckdb(values, t=made.table("latest/loudness")) == expected


def test_a_registry_that_is_away_stops_only_records_of_schemas_that_nobody_told_of(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with run_registry_server(tmp_path) as url:
        schemas = WriterSchemaCache(lambda: open_registry(url)).find_readable
        registry = FileRegistry(tmp_path)
        old = AvroCodec(EARLIER, register_contract(registry, EARLIER).id, registry.find_schema)
        plan = plan_over(HEARD)
        assert list(load_writer_schemas(plan.sources, schemas)["heard"].schemas) == [1]
    new = AvroCodec(HEARD, register_contract(registry, HEARD).id, registry.find_schema)

    def frame(*values: bytes) -> Any:
        rows = [(None, value, "heard", 0, offset, None) for offset, value in enumerate(values)]
        return spark.createDataFrame(rows, KAFKA_SOURCE_DDL)

    away = load_writer_schemas(plan.sources, schemas)
    known = {"id": "a", "at": 1, "loud": 1.0}
    refuse_unknown_schemas(frame(old.encode(known), b"{}"), away)
    with pytest.raises(
        RegistryError,
        match=r"schema 2, which is not cached. The request .* registry at .* failed",
    ):
        refuse_unknown_schemas(frame(old.encode(known), new.encode(known)), away)
    with pytest.raises(RegistryError, match="Check that it is up"):
        WriterSchemaCache(lambda: open_registry(url)).find_readable("heard", HEARD.fields)
