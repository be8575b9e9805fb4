"""Python steps over exact types: what a function gets, and what it may return."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

from penstock.ingestion.contracts import parse_contract
from penstock.stream import fixed, max_, read, sum_
from penstock.testing import PipelineDriver

ITEM = [
    {"name": "price", "type": "decimal(12, 2)", "doc": "P."},
    {"name": "sold_on", "type": "date", "doc": "D."},
]
CONTRACT = parse_contract(
    {
        "topic": "orders",
        "event_time": "at",
        "fields": [
            {"name": "at", "type": "timestamp", "format": "seconds", "doc": "T."},
            {"name": "items", "type": "array<struct>", "fields": ITEM, "doc": "I."},
            {"name": "labels", "type": "map<string, string>", "doc": "L."},
        ],
    }
)


def list_items(row: dict[str, Any]) -> list[dict[str, Any]]:
    labels = dict(row["labels"])
    return [
        {"shop": labels["shop"], "price": item["price"] * 2, "sold_on": item["sold_on"]}
        for item in row["items"]
    ]


def test_a_function_gets_and_returns_decimals_and_dates() -> None:
    pipeline = (
        read(CONTRACT)
        .flat_map(list_items, returns={"shop": "STRING", "price": "DECIMAL(14, 2)", "sold_on": "DATE"})
        .key("shop")
        .aggregate(revenue=sum_("price"), newest=max_("sold_on"))
        .window(fixed("1 minute"))
        .write("by_shop")
    )
    items = [{"price": 0.1, "sold_on": "2026-01-01"}, {"price": "0.20", "sold_on": "2025-12-31"}]
    order = {"at": 1_767_225_600, "items": items, "labels": {"shop": "north"}}
    with PipelineDriver(pipeline, clock="2026-01-01T00:00:00Z", contracts=[CONTRACT]) as driver:
        driver.send(json.dumps(order))
        driver.end_input("2026-01-01T00:02:00Z")
        [row] = driver.latest(columns=("shop", "revenue", "newest"))
    assert row == {"shop": "north", "revenue": Decimal("0.60"), "newest": date(2026, 1, 1)}
