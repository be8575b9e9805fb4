"""Members of structs and exact types from a topic to a Delta table, live and in the driver of tests."""

import json
import random
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, parse_contract
from penstock.stream import Pipeline, collect, count, fixed, max_, read, sum_
from penstock.testing import BackendName, PipelineDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
CITIES = ("Rome", "Oslo", "Bari")
RECORDS = 200


def make_contract(topic: str) -> Contract:
    address = [
        {"name": "city", "type": "string", "doc": "City."},
        {"name": "moved_in", "type": "date", "doc": "Day.", "required": False},
    ]
    fields = [
        {"name": "id", "type": "uuid", "doc": "I."},
        {"name": "ordered_at", "type": "timestamp", "format": "iso8601", "doc": "T."},
        {"name": "amount", "type": "decimal(12, 2)", "doc": "A."},
        {"name": "status", "type": "enum", "symbols": ["new", "paid"], "doc": "S."},
        {"name": "address", "type": "struct", "fields": address, "doc": "A."},
    ]
    return parse_contract({"topic": topic, "event_time": "ordered_at", "key": "id", "fields": fields})


def build_pipeline(contract: Contract) -> Pipeline:
    return (
        read(contract)
        .filter("status = 'paid' and address.city != 'Bari'")
        .key("address.city")
        .aggregate(
            orders=count(),
            revenue=sum_("amount"),
            largest=max_("amount"),
            latest_move=max_("address.moved_in"),
            ids=collect("id"),
        )
        .window(fixed("1 minute"))
        .write("by_city")
    )


def make_orders() -> list[dict[str, Any]]:
    rng = random.Random(10)
    return [
        {
            "id": str(UUID(int=rng.getrandbits(128))),
            "ordered_at": (START + timedelta(milliseconds=rng.randrange(60_000))).isoformat(),
            # As a number that doubles cannot represent, and as text.
            "amount": rng.choice(
                ["0.10", 0.1, "9999999999.99", f"{rng.randrange(10**6)}.{rng.randrange(10)}"]
            ),
            "status": rng.choice(["new", "paid"]),
            "address": {"city": rng.choice(CITIES)}
            | (
                {"moved_in": str(date(2000, 1, 1) + timedelta(rng.randrange(9000)))}
                if rng.random() < 0.5
                else {}
            ),
        }
        for _ in range(RECORDS)
    ]


def compute_expected(orders: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    by_city: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for order in orders:
        if order["status"] == "paid" and order["address"]["city"] != "Bari":
            by_city[order["address"]["city"]].append(order)
    return {
        city: {
            "orders": len(group),
            "revenue": sum((Decimal(str(order["amount"])) for order in group), Decimal(0)),
            "largest": max(Decimal(str(order["amount"])) for order in group),
            "latest_move": max(
                date.fromisoformat(order["address"]["moved_in"])
                for order in group
                if "moved_in" in order["address"]
            ),
            "ids": sorted(order["id"] for order in group),
        }
        for city, group in by_city.items()
    }


def to_results(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    values = ("orders", "revenue", "largest", "latest_move", "ids")
    return {
        row["address.city"]: {name: sorted(row[name]) if name == "ids" else row[name] for name in values}
        for row in rows
    }


@pytest.mark.kafka
def test_a_live_stream_writes_exact_values_of_nested_fields(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    orders, contract = make_orders(), make_contract("nested-orders")
    broker.create_topic("nested-orders", 1)
    closing_order = {**orders[0], "status": "new", "ordered_at": (START + timedelta(minutes=2)).isoformat()}
    send(broker, "nested-orders", [*orders, closing_order])
    plan = build_pipeline(contract).plan
    clock = int(START.timestamp() * 1000) + 150_000
    runner = StreamRunner(plan, spark, broker, tmp_path, clock=clock)
    runner.run_until_read(RECORDS + 1)
    table = runner.table("latest/by_city")
    assert to_results(table.to_pylist()) == compute_expected(orders)
    assert table.schema.field("revenue").type == pa.decimal128(22, 2)
    assert table.schema.field("latest_move").type == pa.date32()


@pytest.mark.parametrize("backend", ["reference", "spark"])
def test_the_driver_gives_the_same_values(backend: BackendName, spark: "SparkSession") -> None:
    orders, contract = make_orders(), make_contract("orders")
    with PipelineDriver(
        build_pipeline(contract), clock=START, backend=backend, contracts=[contract], spark=spark
    ) as driver:
        driver.send(*(json.dumps(order) for order in orders))
        driver.end_input(START + timedelta(minutes=2))
        assert to_results(driver.latest()) == compute_expected(orders)
