"""Writes quarantined records and the ledger of a stream that has read them, for tests of pages."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from tests.platform.console.conftest import NOW_MS
from tests.platform.console.pane_tables import to_utc

from penstock.engine.batch.record_schemas import LEDGER_SCHEMA, QUARANTINE_SCHEMA
from penstock.engine.plan.codec import contract_version
from penstock.platform.services.stream_catalog import load_plan

STREAM = "sensor_minute"
_CLOCK = pa.field("batch_clock", pa.timestamp("us", tz="UTC"))


def write_quarantine(home: Path, *records: tuple[int, bytes | None, str]) -> None:
    """Quarantine records of partition 0 of `sensors`: each an offset, a value and a reason."""
    version = contract_version(load_plan(STREAM).sources[0])
    rows: list[dict[str, Any]] = [
        {
            "topic": "sensors",
            "partition": 0,
            "offset": offset,
            "value": value,
            "reason": reason,
            "stream": STREAM,
            "contract": version,
            "batch_id": 0,
            "arrived": to_utc(NOW_MS - 60_000 + offset),
            "batch_clock": to_utc(NOW_MS),
        }
        for offset, value, reason in records
    ]
    schema = pa.schema([*QUARANTINE_SCHEMA, pa.field("batch_id", pa.int64()), _CLOCK])
    write_deltalake(home / "warehouse/quarantine/sensors", pa.Table.from_pylist(rows, schema), mode="append")


def write_ledger(home: Path, end: int) -> None:
    """Let the stream have read partition 0 up to an offset."""
    read = dict.fromkeys(LEDGER_SCHEMA.names, 0) | {
        "topic": "sensors",
        "end": end,
        "read": end,
        "batch_id": 0,
    }
    schema = pa.schema([*LEDGER_SCHEMA, pa.field("batch_id", pa.int64())])
    write_deltalake(home / f"warehouse/ledger/{STREAM}", pa.Table.from_pylist([read], schema))
