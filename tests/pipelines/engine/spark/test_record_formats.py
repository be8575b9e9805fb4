"""Records of every format, from a producer through a topic and a stream into a table, compared with JSON."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from tests.ingestion.contracts.format_contracts import FORMATS, make_contract
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, ContractField
from penstock.ingestion.feed import Feed
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.registry import FileRegistry, WriterSchemaCache
from penstock.ingestion.sources.source_discovery import open_source
from penstock.stream import count, fixed, last, read, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

RECORDS = 120
CLOCK_MS = 1_800_000_000_000
CHANGES = (
    {"before": {"id": str(UUID(int=1))}, "after": None, "op": "d", "source": {}},
    None,
    {"op": "t", "source": {}},
)
"""The event of a deleted row, its tombstone, and the event of a truncated table."""
QUARANTINED = {
    "json": {"malformed": 2, "no_value": 1},
    "debezium": {"malformed": 2, "unknown_operation": 1},
    "avro": {"wrong_schema": 2, "no_value": 1},
    "json_schema": {"wrong_schema": 2, "no_value": 1},
    "protobuf": {"wrong_schema": 2, "no_value": 1},
}
FIELDS = (
    ContractField("id", "uuid", "."),
    ContractField("at", "timestamp(iso8601)", "."),
    ContractField("shop", "string", "."),
    ContractField("amount", "decimal(12, 2)", "."),
    ContractField("day", "date", ".", required=False),
    ContractField("opens", "time", "."),
    ContractField("seal", "bytes", "."),
    ContractField("status", "enum(new, paid)", "."),
    ContractField("address", "struct<city: string, zip?: string>", "."),
    ContractField("labels", "map<string, int>", "."),
    ContractField("prices", "array<double>", "."),
)


def make_orders() -> list[dict[str, Any]]:
    return [
        {
            "id": str(UUID(int=number)),
            "at": f"2026-01-{1 + number * 3 // RECORDS:02}T10:{number % 60:02}:00Z",
            "shop": f"shop {number % 7}",
            "amount": f"{number}.{number % 100:02}",
            **({"day": f"2026-02-{1 + number % 28:02}"} if number % 5 else {}),
            "opens": f"09:{number % 60:02}:00",
            "seal": "AQI=",
            "status": ("new", "paid")[number % 2],
            "address": {"city": f"city {number % 2}", **({"zip": "12345"} if number % 3 else {})},
            "labels": {"a": number, "b": 1},
            "prices": [number / 4, 1.0],
        }
        for number in range(RECORDS)
    ]


def build_plan(contract: Contract) -> Plan:
    keyed = read(contract).key("shop", "address.city")
    aggregates = {
        "n": count(),
        "amount": sum_("amount"),
        "day": last("day"),
        "opens": last("opens"),
        "status": last("status"),
        "zip": last("address.zip"),
        "labels": last("labels"),
        "seal": last("seal"),
    }
    return (
        keyed.aggregate(**aggregates)
        .window(fixed("1 day"))
        .write(f"orders_{contract.encoding}", mode="latest")
        .plan
    )


def compute_expected(until: str) -> list[tuple[Any, ...]]:
    """Return the rows of the table, up to a day."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for order in make_orders():
        key = (order["shop"], order["address"]["city"], order["at"][:10])
        if key[-1] < until:
            groups.setdefault(key, []).append(order)
    rows = []
    for key, orders in sorted(groups.items()):
        newest = max(orders, key=lambda order: order["at"])
        amount = sum(Decimal(order["amount"]) for order in orders)
        newest_day = max((o for o in orders if "day" in o), key=lambda o: o["at"], default={}).get("day")
        newest_zip = max(
            (o["address"] | {"at": o["at"]} for o in orders if "zip" in o["address"]),
            key=lambda address: address["at"],
            default={},
        ).get("zip")
        opens = f"{newest['opens']}.000000"
        texts = (newest_day, opens, newest["status"], newest_zip)
        rows.append((*key, len(orders), amount, *texts, newest["labels"], b"\x01\x02"))
    return rows


@pytest.mark.parametrize("encoding", FORMATS)
def test_every_format_gives_the_same_table(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, encoding: str
) -> None:
    registry = FileRegistry(tmp_path / "registry")
    topic = f"{encoding}-{uuid4().hex[:8]}"
    contract = make_contract(encoding, FIELDS, topic=topic, key="shop", event_time="at")
    broker.create_topic(contract.topic, 1)
    broker.create_topic(contract.dead_letter_topic, 1)
    feed_orders(broker, registry, contract, tmp_path / "feed", make_orders())
    rest = [b"\0\0\0\0\xffx", b"{", None, *(CHANGES if encoding == "debezium" else ())]
    send(broker, topic, rest)
    runner = StreamRunner(
        build_plan(contract),
        spark,
        broker,
        tmp_path,
        schemas=WriterSchemaCache(lambda: registry).find_readable,
    )
    runner.clock = CLOCK_MS
    runner.run_until_read(RECORDS + len(rest))
    # No window of the last day is complete.
    assert read_orders(runner.table(f"latest/orders_{encoding}")) == compute_expected(until="2026-01-03")
    reasons = runner.table(f"quarantine/{topic}").column("reason").to_pylist()
    assert Counter(reasons) == QUARANTINED[encoding]
    filtered = sum(account.filtered for outcome in runner.progress.outcomes for account in outcome.accounts)
    # Of Debezium: a tombstone, and the event of a deleted row with the tombstone after it.
    assert filtered == (3 if encoding == "debezium" else 0)
    stored = TopicSource(spark, topic, BrokerAccess(broker.bootstrap))
    config = BoundedRunConfig(tmp_path / "bounded", tmp_path / "again", schema_lookup=runner.schemas)
    run_bounded(runner.plan, spark, stored, config, lambda: CLOCK_MS)
    again = replace(runner, warehouse_override=tmp_path / "again")
    assert read_orders(again.table(f"latest/orders_{encoding}")) == compute_expected(until="2026-01-04")


def read_orders(table: pa.Table) -> list[tuple[Any, ...]]:
    return query_duckdb(
        "SELECT shop, \"address.city\", strftime(window_start, '%Y-%m-%d'), "
        "n, amount, day::VARCHAR, opens, status, zip, labels, seal FROM t ORDER BY 1, 2, 3",
        t=table,
    )


def feed_orders(
    broker: LocalBroker,
    registry: FileRegistry,
    contract: Contract,
    folder: Path,
    orders: list[dict[str, Any]],
) -> None:
    """Send orders by a producer from a file of JSON lines."""
    folder.mkdir()
    file = folder / "orders.jsonl"
    file.write_text("".join(f"{json.dumps(order)}\n" for order in orders))
    form = create_record_format(contract, registry)
    source = open_source("json-lines", contract, form, lambda: 1, {"path": str(file)})
    feed = Feed(source, contract, broker.bootstrap, folder / "producer", lambda: 1, registry=registry)
    summary = feed.run(Event())
    assert (summary.acknowledged_records, summary.dead_letters) == (RECORDS, 0)
