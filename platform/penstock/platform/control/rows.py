"""Between the host's dataclasses and the store's rows."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from penstock.pipelines.host.control import BatchRecord, PartitionAccount

COUNTS = ("read", "folded", "late", "quarantined", "duplicate", "filtered")
TIMINGS = ("early", "on_time", "late", "retract", "replaced")


def batch_row(record: BatchRecord) -> dict[str, Any]:
    """A batch as the table holds it. ValueError for panes of a timing that has no column."""
    if unknown := set(record.panes) - set(TIMINGS):
        raise ValueError(f"panes of {sorted(unknown)} cannot be written down: the timings are {TIMINGS}")
    sums = {name: sum(getattr(account, name) for account in record.accounts) for name in COUNTS}
    panes = {f"panes_{timing}": record.panes.get(timing, 0) for timing in TIMINGS}
    return {
        "stream": record.stream,
        "batch_id": record.batch_id,
        "epoch": record.epoch,
        "kind": record.kind,
        "clock_ms": record.clock_ms,
        "watermark_ms": record.watermark_ms,
        "accounts": [asdict(account) for account in record.accounts],
        "rows": record.rows,
        "lag_records": record.lag_records,
        "state_rows": record.state_rows,
        "state": {stage: dict(size) for stage, size in record.state.items()},
        "given": dict(record.given),
        "duration_ms": sum(record.durations_ms.values()),
        "durations_ms": dict(record.durations_ms),
        **sums,
        **panes,
    }


def batch_record(row: Mapping[str, Any]) -> BatchRecord:
    """The batch that a row was made from; a timing without panes is not mentioned."""
    panes = {timing: row[f"panes_{timing}"] for timing in TIMINGS if row[f"panes_{timing}"]}
    return BatchRecord(
        stream=row["stream"],
        batch_id=row["batch_id"],
        epoch=row["epoch"],
        kind=row["kind"],
        clock_ms=row["clock_ms"],
        watermark_ms=row["watermark_ms"],
        accounts=tuple(PartitionAccount(**account) for account in row["accounts"]),
        panes=panes,
        rows=row["rows"],
        lag_records=row["lag_records"],
        durations_ms=row["durations_ms"],
        state_rows=row["state_rows"],
        state=row["state"],
        given=row["given"],
    )
