"""The figures of a stream's recent batches, and their sums over short steps of time, for charts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from penstock.engine.batch.accounts import ACCOUNT_COUNTS
from penstock.engine.host.control import BatchRecord
from penstock.platform.control.batch_rates import DATA_KIND, find_percentile
from penstock.platform.control.row_mapping import from_batch_row
from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import batches

MAX_BATCHES = 20_000


@dataclass(frozen=True)
class HistoryStep:
    """What the batches of one step of time did. A figure without a base is None."""

    start_ms: int
    records_per_second: float
    batch_ms_p50: float | None
    batch_ms_p99: float | None
    lag_records: int | None
    watermark_delay_ms: int | None
    late_share: float | None
    invalid_share: float | None
    state_rows: int | None


def read_batches_since(store: ControlStore, stream: str, since_ms: int) -> list[BatchRecord]:
    """Return the batches that a stream committed since a time, oldest first; at most the newest MAX_BATCHES."""
    query = (
        select(batches)
        .where(batches.c.stream == stream, batches.c.committed_at_ms >= since_ms)
        .order_by(batches.c.committed_at_ms.desc())
        .limit(MAX_BATCHES)
    )
    with store.engine.connect() as connection:
        return [from_batch_row(dict(row)) for row in connection.execute(query).mappings()][::-1]


def sum_fates(records: Sequence[BatchRecord]) -> dict[str, int]:
    """Return how many records were read, and what became of them."""
    accounts = [account for record in records for account in record.accounts]
    return {name: sum(getattr(account, name) for account in accounts) for name in ACCOUNT_COUNTS}


def sum_steps(
    records: Sequence[BatchRecord], start_ms: int, end_ms: int, step_ms: int
) -> Iterator[HistoryStep]:
    """Yield each step of an interval, also those without batches, by the time of the commit."""
    by_step: dict[int, list[BatchRecord]] = {}
    for record in records:
        by_step.setdefault((record.commit_time_ms - start_ms) // step_ms, []).append(record)
    for number in range((end_ms - start_ms) // step_ms):
        yield _sum_step(by_step.get(number, []), start_ms + number * step_ms, step_ms)


def _sum_step(records: Sequence[BatchRecord], start_ms: int, step_ms: int) -> HistoryStep:
    counts = sum_fates(records)
    durations = [sum(record.durations_ms.values()) for record in records if record.kind == DATA_KIND]
    last = records[-1] if records else None
    delay_ms = None if last is None or last.watermark_ms is None else last.commit_time_ms - last.watermark_ms
    return HistoryStep(
        start_ms,
        counts["read"] * 1000 / step_ms,
        find_percentile(durations, 0.5),
        find_percentile(durations, 0.99),
        None if last is None else last.lag_records,
        delay_ms,
        counts["late"] / counts["read"] if counts["read"] else None,
        counts["quarantined"] / counts["read"] if counts["read"] else None,
        None if last is None else last.state_rows,
    )
