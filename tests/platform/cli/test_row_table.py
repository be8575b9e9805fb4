"""Rows of tables with values of every type, as text and as JSON."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.platform.cli.output import print_json
from penstock.platform.cli.row_table import format_cell
from penstock.platform.services.table_rows import RowQuery, read_rows
from penstock.platform.services.warehouse_tables import WarehouseTable

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("labels", pa.map_(pa.string(), pa.int64())),
        ("address", pa.struct([("city", pa.string()), ("since", pa.date32())])),
        ("seal", pa.binary()),
        ("amount", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("window_start", pa.timestamp("us", "UTC")),
    ]
)
ROW = {
    "id": "a",
    "labels": [("new", 1), ("old", 2)],
    "address": {"city": "Köln", "since": date(2026, 1, 2)},
    "seal": b"\x01\xff",
    "amount": Decimal("1.50"),
    "day": date(2026, 1, 3),
    "window_start": datetime(2026, 1, 1, tzinfo=UTC),
}


def test_every_type_of_a_contract_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist([ROW], SCHEMA))
    table = WarehouseTable("latest", "orders", tmp_path)
    condition = "amount > 1 AND day > '2026-01-02' AND address.city = 'Köln'"
    found = read_rows(table, RowQuery(10, where=condition), 0)
    (row,) = found.rows
    assert dict(zip(found.columns, map(format_cell, row), strict=True)) == {
        "id": "a",
        "labels": '{"new": 1, "old": 2}',
        "address": '{"city": "Köln", "since": "2026-01-02"}',
        "seal": "Af8=",
        "amount": "1.50",
        "day": "2026-01-03",
        "window_start": "2026-01-01 00:00:00",
    }
    print_json([dict(zip(found.columns, row, strict=True))])
    assert json.loads(capsys.readouterr().out) == [
        {
            "id": "a",
            "labels": {"new": 1, "old": 2},
            "address": {"city": "Köln", "since": "2026-01-02"},
            "seal": "Af8=",
            "amount": "1.50",
            "day": "2026-01-03",
            "window_start": "2026-01-01 00:00:00+00:00",
        }
    ]


def test_bytes_that_are_text_are_shown_as_text() -> None:
    assert [format_cell(value) for value in (b'{"a":1}', b"", b"a\0b")] == ['{"a":1}', "", "YQBi"]
