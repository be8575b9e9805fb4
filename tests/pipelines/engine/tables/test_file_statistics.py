"""Column statistics of files: readers that skip files by them find every matching row."""

import json
from datetime import date
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from penstock.engine.tables.file_statistics import MAX_BOUND_TEXT_CHARS, build_file_statistics
from penstock.engine.tables.log_table import LogTable

SCHEMA = pa.schema(
    [("number", pa.int64()), ("word", pa.string()), ("share", pa.float64()), ("tags", pa.list_(pa.string()))]
)
BATCHES: list[list[dict[str, Any]]] = [
    [
        {"number": 1, "word": "a", "share": 0.5, "tags": ["x"]},
        {"number": None, "word": "c", "share": 1.5, "tags": None},
    ],
    [{"number": 7, "word": None, "share": None, "tags": []}],
    [{"number": -3, "word": "bär", "share": -2.25, "tags": ["y"]}],
]


@pytest.mark.parametrize(
    "condition", [("number", 7), ("number", -3), ("word", "c"), ("word", "bär"), ("share", 1.5)]
)
def test_readers_find_every_matching_row(tmp_path: Path, condition: tuple[str, Any]) -> None:
    table = LogTable(tmp_path / "t", SCHEMA, "stream")
    for number, rows in enumerate(BATCHES):
        table.commit(number, table.write(pa.Table.from_pylist(rows, schema=SCHEMA), number, number), number)
    name, value = condition
    matching = DeltaTable(tmp_path / "t").to_pyarrow_table(filters=[(name, "=", value)])
    assert [row[name] for row in pa.table(matching).to_pylist()] == [value]


def test_bounds_are_given_only_if_they_are_exact() -> None:
    rows = {
        "word": ["x" * (MAX_BOUND_TEXT_CHARS + 1)],
        "share": [nan],
        "infinite": [inf],
        "all_null": pa.nulls(1, pa.int64()),
        "number": [4],
    }
    statistics = json.loads(build_file_statistics(pa.table(rows)))
    assert statistics == {
        "numRecords": 1,
        "minValues": {"number": 4},
        "maxValues": {"number": 4},
        "nullCount": {"word": 0, "share": 0, "infinite": 0, "all_null": 1, "number": 0},
    }


EXACT_SCHEMA = pa.schema(
    [("amount", pa.decimal128(20, 2)), ("day", pa.date32()), ("address.city", pa.string())]
)
EXACT_ROWS = [
    {"amount": Decimal("0.10"), "day": date(2026, 1, 1), "address.city": "Rome"},
    {"amount": Decimal("123456789012345678.91"), "day": date(1, 1, 1), "address.city": "Oslo"},
    {"amount": Decimal("-999999999999999999.99"), "day": None, "address.city": None},
    {"amount": None, "day": date(9999, 12, 31), "address.city": "Bari"},
]


@pytest.mark.parametrize("row", EXACT_ROWS, ids=str)
def test_readers_find_decimals_dates_and_dotted_names(tmp_path: Path, row: dict[str, Any]) -> None:
    table = LogTable(tmp_path / "t", EXACT_SCHEMA, "stream")
    for number, each in enumerate(EXACT_ROWS):
        rows = pa.Table.from_pylist([each], schema=EXACT_SCHEMA)
        table.commit(number, table.write(rows, number, number), number)
    stored = DeltaTable(tmp_path / "t")
    for name, value in row.items():
        if value is not None:
            matching = pa.table(stored.to_pyarrow_table(filters=[(name, "=", value)]))
            assert matching.select(EXACT_SCHEMA.names).to_pylist() == [row]
