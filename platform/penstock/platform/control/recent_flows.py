"""What streams read from each topic and wrote to each table recently, for the edges of a graph."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, select

from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import batches


@dataclass(frozen=True)
class StreamFlow:
    """The records that a stream read, by topic, and the rows that it wrote, by path, in an interval.

    An archive counts its rows without a path, as it has one table only.
    """

    interval_ms: int
    records_by_topic: Counter[str] = field(default_factory=Counter)
    rows_by_path: Counter[str] = field(default_factory=Counter)
    archived_rows: int = 0

    def records_per_second(self, topic: str) -> float:
        """Return the rate of records from a topic."""
        return self.records_by_topic[topic] * 1000 / self.interval_ms

    def rows_per_second(self, path: str) -> float:
        """Return the rate of rows to a path."""
        return (self.rows_by_path[path] or self.archived_rows) * 1000 / self.interval_ms


def read_recent_flows(
    store: ControlStore, since_by_stream: Mapping[str, int], now_ms: int
) -> dict[str, StreamFlow]:
    """Return the flow of each stream since its own time, with one query."""
    if not since_by_stream:
        return {}
    columns = (
        *(batches.c.stream, batches.c.committed_at_ms),
        *(batches.c.accounts, batches.c.result_rows, batches.c.rows),
    )
    query = select(*columns).where(
        batches.c.stream.in_(since_by_stream), batches.c.committed_at_ms >= min(since_by_stream.values())
    )
    rows_by_stream: dict[str, list[Row[Any]]] = {stream: [] for stream in since_by_stream}
    with store.engine.connect() as connection:
        for row in connection.execute(query):
            if row.committed_at_ms >= since_by_stream[row.stream]:
                rows_by_stream[row.stream].append(row)
    return {
        stream: _sum_flow(max(now_ms - since_by_stream[stream], 1), rows)
        for stream, rows in rows_by_stream.items()
    }


def _sum_flow(interval_ms: int, rows: Sequence[Row[Any]]) -> StreamFlow:
    records_by_topic: Counter[str] = Counter()
    rows_by_path: Counter[str] = Counter()
    for row in rows:
        rows_by_path.update(row.result_rows)
        for account in row.accounts:
            records_by_topic[account["topic"]] += account["read"]
    archived_rows = 0 if rows_by_path else sum(row.rows for row in rows)
    return StreamFlow(interval_ms, records_by_topic, rows_by_path, archived_rows)
