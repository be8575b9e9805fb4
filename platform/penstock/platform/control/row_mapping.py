"""Conversion between batch records and rows of the store."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from penstock.engine.batch.accounts import ACCOUNT_COUNTS, PartitionAccount
from penstock.engine.host.control import BatchRecord, StreamHealth
from penstock.engine.host.stream_state import StreamState

PANE_TIMINGS = ("early", "on_time", "late", "retract", "replaced")


def to_batch_row(record: BatchRecord) -> dict[str, Any]:
    """Return the row of a batch. Raises ValueError for a pane timing without a column."""
    if unknown_timings := set(record.panes) - set(PANE_TIMINGS):
        raise ValueError(
            f"unknown pane timings {sorted(unknown_timings)}; known timings: {', '.join(PANE_TIMINGS)}"
        )
    count_sums = {name: sum(getattr(account, name) for account in record.accounts) for name in ACCOUNT_COUNTS}
    pane_counts = {f"panes_{timing}": record.panes.get(timing, 0) for timing in PANE_TIMINGS}
    return {
        "stream": record.stream,
        "batch_id": record.batch_id,
        "epoch": record.epoch,
        "kind": record.kind,
        "clock_ms": record.clock_ms,
        "committed_at_ms": record.commit_time_ms,
        "watermark_ms": record.watermark_ms,
        "accounts": [asdict(account) for account in record.accounts],
        "rows": record.rows,
        "lag_records": record.lag_records,
        "state_rows": record.state_rows,
        "state": {stage: dict(size) for stage, size in record.state.items()},
        "result_rows": dict(record.result_rows),
        "duration_ms": sum(record.durations_ms.values()),
        "durations_ms": dict(record.durations_ms),
        **count_sums,
        **pane_counts,
    }


def from_batch_row(row: Mapping[str, Any]) -> BatchRecord:
    """Return the batch of a row, without timings that have no panes."""
    pane_counts = {timing: row[f"panes_{timing}"] for timing in PANE_TIMINGS if row[f"panes_{timing}"]}
    return BatchRecord(
        stream=row["stream"],
        batch_id=row["batch_id"],
        epoch=row["epoch"],
        kind=row["kind"],
        clock_ms=row["clock_ms"],
        watermark_ms=row["watermark_ms"],
        accounts=tuple(PartitionAccount(**account) for account in row["accounts"]),
        panes=pane_counts,
        rows=row["rows"],
        lag_records=row["lag_records"],
        durations_ms=row["durations_ms"],
        state_rows=row["state_rows"],
        state=row["state"],
        result_rows=row["result_rows"],
        committed_at_ms=row["committed_at_ms"] or None,  # a host of 0.1.0 stores none
    )


def to_stream_health(row: Mapping[str, Any]) -> StreamHealth:
    """Convert a row of the table of stream health."""
    return StreamHealth(**{**row, "state": StreamState(row["state"])})
