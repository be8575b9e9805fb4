"""Writes tables of panes as a stream does, for tests of pages."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from tests.platform.console.conftest import NOW_MS

MINUTE_MS = 60_000
_TIMESTAMP = pa.timestamp("us", "UTC")
PANE_SCHEMA = pa.schema(
    [
        *(("device", pa.string()), ("temperature", pa.float64()), ("readings", pa.int64())),
        *(("window_start", _TIMESTAMP), ("window_end", _TIMESTAMP)),
        *(("timing", pa.string()), ("kind", pa.string())),
        *(("batch_id", pa.int64()), ("batch_clock", _TIMESTAMP)),
    ]
)


def build_pane(
    device: str, temperature: float, window_age_min: int, clock_age_s: int, timing: str, kind: str = "insert"
) -> dict[str, Any]:
    """Return a row of the pane log, with a window and a clock that are so old."""
    start_ms = NOW_MS - window_age_min * MINUTE_MS
    return {
        "device": device,
        "temperature": temperature,
        "readings": 60,
        "window_start": to_utc(start_ms),
        "window_end": to_utc(start_ms + MINUTE_MS),
        "timing": timing,
        "kind": kind,
        "batch_id": 1,
        "batch_clock": to_utc(NOW_MS - clock_age_s * 1000),
    }


def write_panes(home: Path, *rows: dict[str, Any], table: str = "panes/sensor_minute") -> None:
    """Append rows to a table of panes."""
    content = pa.Table.from_pylist(list(rows), PANE_SCHEMA)
    write_deltalake(home / "warehouse" / table, content, mode="append")


def to_utc(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
