"""Reports from the control store: sums over batches, and an overview of each stream."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, case, func, select

from penstock.engine.batch.accounts import ACCOUNT_COUNTS
from penstock.engine.host.control import BatchRecord, DesiredState, Lease, StreamBacklog, StreamHealth
from penstock.platform.control.row_mapping import (
    PANE_TIMINGS,
    from_batch_row,
    to_stream_health,
)
from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import backlogs, batches, health, leases, streams


@dataclass(frozen=True)
class BatchSummary:
    """The sums of a stream's batches from `first` to `last`; `newest` is the last of them.

    `replaced` counts the batches whose results a replay has replaced.
    """

    stream: str
    first: int
    last: int
    batches: int
    read: int
    accepted: int
    late: int
    quarantined: int
    duplicate: int
    filtered: int
    panes: Mapping[str, int]
    rows: int
    duration_ms: float
    longest_ms: float
    newest: BatchRecord
    replaced: int = 0


@dataclass(frozen=True)
class StreamOverview:
    """One stream: desired state and its time, lease, last batch, and reported health.

    `backlog` is the backlog that the host reports while the stream commits no batch.
    """

    stream: str
    desired: DesiredState | None
    desired_at_ms: int
    lease: Lease | None
    last: BatchRecord | None
    health: StreamHealth | None
    backlog: StreamBacklog | None = None

    @property
    def lag_records(self) -> int:
        """The consumer lag in records: as of the newest batch, or as reported now if the stream commits none."""
        if self.backlog is not None:
            return self.backlog.records
        return 0 if self.last is None else self.last.lag_records


def summarize_batches(
    store: ControlStore, stream: str, after_batch: int, before_batch: int | None = None
) -> BatchSummary | None:
    """Sum a stream's batches after one batch (-1: from the first) and before another; None if there are none.

    The database computes the sums over the primary key, so the cost depends on the new batches only.
    """
    sum_columns = [func.coalesce(func.sum(batches.c[name]), 0).label(name) for name in _SUMMED_COLUMNS]
    conditions = [batches.c.stream == stream, batches.c.batch_id > after_batch]
    conditions += [] if before_batch is None else [batches.c.batch_id < before_batch]
    query = select(
        func.count().label("batches"),
        func.min(batches.c.batch_id).label("first"),
        func.max(batches.c.batch_id).label("last"),
        func.max(batches.c.duration_ms).label("longest_ms"),
        func.coalesce(func.sum(case((batches.c.replaced, 1), else_=0)), 0).label("replaced"),
        *sum_columns,
    ).where(*conditions)
    with store.engine.connect() as connection:
        row = dict(connection.execute(query).mappings().one())
        if not row["batches"]:
            return None
        # The newest batch of this summary: one that was committed meanwhile belongs to the next summary.
        newest_query = select(batches).where(batches.c.stream == stream, batches.c.batch_id == row["last"])
        record = from_batch_row(dict(connection.execute(newest_query).mappings().one()))
    panes = {timing: int(row.pop(f"panes_{timing}")) for timing in PANE_TIMINGS}
    counts = {
        name: int(row.pop(name)) for name in (*ACCOUNT_COUNTS, "rows", "batches", "first", "last", "replaced")
    }
    return BatchSummary(
        stream=stream,
        panes=panes,
        newest=record,
        duration_ms=float(row["duration_ms"]),
        longest_ms=float(row["longest_ms"]),
        **counts,
    )


def count_reads_by_topic(store: ControlStore, summary: BatchSummary) -> Mapping[str, int]:
    """Count the records of each topic that the batches of a summary read."""
    is_of_stream = batches.c.stream == summary.stream
    query = select(batches.c.accounts).where(
        is_of_stream, batches.c.batch_id.between(summary.first, summary.last)
    )
    read_counts: Counter[str] = Counter()
    with store.engine.connect() as connection:
        for accounts in connection.execute(query).scalars():
            for account in accounts:
                read_counts[account["topic"]] += account["read"]
    return read_counts


def count_result_rows(store: ControlStore, summary: BatchSummary) -> Mapping[str, int]:
    """Count the rows that the batches of a summary wrote to each table and topic; empty if a batch has no counts.

    A table of latest values gets a row for each window that a batch updates.
    """
    is_of_stream = batches.c.stream == summary.stream
    query = select(batches.c.result_rows, batches.c.rows).where(
        is_of_stream, batches.c.batch_id.between(summary.first, summary.last)
    )
    row_counts: Counter[str] = Counter()
    with store.engine.connect() as connection:
        for result_rows, rows in connection.execute(query):
            if rows and not result_rows:  # written without counts
                return {}
            row_counts.update(result_rows)
    return row_counts


def read_overview(store: ControlStore) -> list[StreamOverview]:
    """Return an overview of every stream with a desired state or a lease."""
    desired_by_stream = store.read_desired_states()
    with store.engine.connect() as connection:
        changed_at_by_stream = {row.stream: row.changed_at_ms for row in connection.execute(select(streams))}
        lease_by_stream = {
            row["stream"]: Lease(**row) for row in connection.execute(select(leases)).mappings()
        }
        health_by_stream = {
            row["stream"]: to_stream_health(dict(row))
            for row in connection.execute(select(health)).mappings()
        }
        backlog_by_stream = {
            row["stream"]: StreamBacklog(**row) for row in connection.execute(select(backlogs)).mappings()
        }
        rows = connection.execute(_select_newest_batches()).mappings()
        last_batch_by_stream = {row["stream"]: from_batch_row(dict(row)) for row in rows}
    return [
        StreamOverview(
            stream=stream,
            desired=desired_by_stream.get(stream),
            desired_at_ms=changed_at_by_stream.get(stream, 0),
            lease=lease_by_stream.get(stream),
            last=last_batch_by_stream.get(stream),
            health=health_by_stream.get(stream),
            backlog=_current_backlog(
                backlog_by_stream.get(stream), lease_by_stream.get(stream), last_batch_by_stream.get(stream)
            ),
        )
        for stream in sorted({*desired_by_stream, *lease_by_stream})
    ]


def _current_backlog(
    backlog: StreamBacklog | None, lease: Lease | None, last_batch: BatchRecord | None
) -> StreamBacklog | None:
    """Return the backlog if it is current: reported by the lease holder, and no batch was committed since."""
    if backlog is None or lease is None or backlog.epoch != lease.epoch or not backlog.records:
        return None
    return backlog if backlog.batch_id == (-1 if last_batch is None else last_batch.batch_id) else None


def _select_newest_batches() -> Select[Any]:
    """Select the newest batch of each stream, with one key lookup per stream."""
    known_streams = select(streams.c.stream).union(select(leases.c.stream)).subquery()
    stream_batches = batches.alias()
    newest_batch_id = select(func.max(stream_batches.c.batch_id)).where(
        stream_batches.c.stream == known_streams.c.stream
    )
    return select(batches).join(
        known_streams,
        (batches.c.stream == known_streams.c.stream)
        & (batches.c.batch_id == newest_batch_id.correlate(known_streams).scalar_subquery()),
    )


_SUMMED_COLUMNS = (*ACCOUNT_COUNTS, *(f"panes_{timing}" for timing in PANE_TIMINGS), "rows", "duration_ms")


def read_batch_history(store: ControlStore, stream: str) -> list[BatchRecord]:
    """Return a stream's batches that no replay has replaced, oldest first."""
    conditions = batches.c.stream == stream, ~batches.c.replaced
    query = select(batches).where(*conditions).order_by(batches.c.batch_id)
    with store.engine.connect() as connection:
        return [from_batch_row(dict(row)) for row in connection.execute(query).mappings()]


def has_written_rows(store: ControlStore, stream: str) -> bool:
    """Whether a stream has written a row."""
    query = select(batches.c.batch_id).where(batches.c.stream == stream, batches.c.rows > 0).limit(1)
    with store.engine.connect() as connection:
        return connection.execute(query).first() is not None
