"""Rates, shares and batch times of a stream over an interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, select

from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import batches, leases

DATA_KIND = "data"
"""The kind of a batch with records. A tick takes no time that tells anything about the stream."""

_RATE_COLUMNS = batches.c.kind, batches.c.read, batches.c.late, batches.c.quarantined, batches.c.duration_ms


@dataclass(frozen=True)
class BatchRates:
    """What a stream did per second, and how long its batches with records took.

    `late_share` and `invalid_share` are shares of the records that were read. A figure without a base is None.
    """

    interval_ms: int
    batches: int
    records_read: int
    records_per_second: float
    batch_ms_p50: float | None
    batch_ms_p99: float | None
    late_share: float | None
    invalid_share: float | None


def compute_rates(
    interval_ms: int, records_read: int, late: int, invalid: int, batch_durations_ms: Sequence[float]
) -> BatchRates:
    """Compute the rates of an interval from its sums and the durations of its batches with records."""
    return BatchRates(
        interval_ms=interval_ms,
        batches=len(batch_durations_ms),
        records_read=records_read,
        records_per_second=records_read * 1000 / interval_ms if interval_ms > 0 else 0.0,
        batch_ms_p50=find_percentile(batch_durations_ms, 0.5),
        batch_ms_p99=find_percentile(batch_durations_ms, 0.99),
        late_share=late / records_read if records_read else None,
        invalid_share=invalid / records_read if records_read else None,
    )


def find_percentile(values: Sequence[float], share: float) -> float | None:
    """Return the nearest-rank percentile: the least value that `share` of all values do not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1] if values else None


def read_rates_by_stream(
    store: ControlStore, since_by_stream: Mapping[str, int], now_ms: int
) -> dict[str, BatchRates]:
    """Return the rates of streams with a lease, each since its own time, with one query."""
    if not since_by_stream:
        return {}
    rows_by_stream: dict[str, list[Row[Any]]] = {stream: [] for stream in since_by_stream}
    with store.engine.connect() as connection:
        for row in connection.execute(_select_batches_since(min(since_by_stream.values()))):
            if row.committed_at_ms >= since_by_stream.get(row.stream, math.inf):
                rows_by_stream[row.stream].append(row)
    return {
        stream: _compute_row_rates(now_ms - since_by_stream[stream], rows)
        for stream, rows in rows_by_stream.items()
    }


def _select_batches_since(since_ms: int) -> Select[Any]:
    """Select the figures of the batches that were committed since a time, with one index lookup per stream."""
    columns = batches.c.stream, batches.c.committed_at_ms, *_RATE_COLUMNS
    is_recent = (batches.c.stream == leases.c.stream) & (batches.c.committed_at_ms >= since_ms)
    return select(*columns).select_from(leases.join(batches, is_recent))


def _compute_row_rates(interval_ms: int, rows: Sequence[Row[Any]]) -> BatchRates:
    return compute_rates(
        interval_ms,
        sum(row.read for row in rows),
        sum(row.late for row in rows),
        sum(row.quarantined for row in rows),
        [row.duration_ms for row in rows if row.kind == DATA_KIND],
    )


def read_batch_durations(store: ControlStore, stream: str, first_batch: int, last_batch: int) -> list[float]:
    """Return how many milliseconds each batch with records took, from one batch to another."""
    query = select(batches.c.duration_ms).where(
        batches.c.stream == stream,
        batches.c.batch_id.between(first_batch, last_batch),
        batches.c.kind == DATA_KIND,
    )
    with store.engine.connect() as connection:
        return list(connection.execute(query).scalars())
