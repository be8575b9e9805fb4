"""What the control store tells Dagster and people: sums over batches, and each stream at a glance."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from sqlalchemy import Select, case, func, select

from penstock.pipelines.host.control import BatchRecord, DesiredState, Lease, StreamHealth, Waiting
from penstock.platform.control.rows import COUNTS, TIMINGS, batch_record
from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import batches, health, leases, streams, waiting


@dataclass(frozen=True)
class BatchSummary:
    """The batches of one stream from `first` to `last`, summed; `newest` is the last of them.

    Of `replaced` of them a replay has taken back what they did.
    """

    stream: str
    first: int
    last: int
    batches: int
    read: int
    folded: int
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
    """One stream: what is wanted, and since when; who writes it, what it last did, how it says it is doing.

    `waiting` is what waits for it where its host sees that, and no batch committed.
    """

    stream: str
    desired: DesiredState | None
    desired_at_ms: int
    lease: Lease | None
    last: BatchRecord | None
    health: StreamHealth | None
    waiting: Waiting | None = None

    @property
    def lag_records(self) -> int:
        """How many records wait, as of its newest batch, or of now where it commits none."""
        if self.waiting is not None:
            return self.waiting.records
        return 0 if self.last is None else self.last.lag_records


def summarise(store: ControlStore, stream: str, after: int, before: int | None = None) -> BatchSummary | None:
    """What a stream did after a batch (-1: from its first), and before another; None where it did nothing.

    Sums are the database's, over the table's key: what it costs follows the new batches, not the old ones.
    """
    sums = [func.coalesce(func.sum(batches.c[name]), 0).label(name) for name in _SUMMED]
    scope = [batches.c.stream == stream, batches.c.batch_id > after]
    scope += [] if before is None else [batches.c.batch_id < before]
    query = select(
        func.count().label("batches"),
        func.min(batches.c.batch_id).label("first"),
        func.max(batches.c.batch_id).label("last"),
        func.max(batches.c.duration_ms).label("longest_ms"),
        func.coalesce(func.sum(case((batches.c.replaced, 1), else_=0)), 0).label("replaced"),
        *sums,
    ).where(*scope)
    with store.engine.connect() as connection:
        row = dict(connection.execute(query).mappings().one())
        if not row["batches"]:
            return None
        # The newest as counted: a batch that was committed in between belongs to the next summary.
        newest = select(batches).where(batches.c.stream == stream, batches.c.batch_id == row["last"])
        record = batch_record(dict(connection.execute(newest).mappings().one()))
    panes = {timing: int(row.pop(f"panes_{timing}")) for timing in TIMINGS}
    counts = {name: int(row.pop(name)) for name in (*COUNTS, "rows", "batches", "first", "last", "replaced")}
    return BatchSummary(
        stream=stream,
        panes=panes,
        newest=record,
        duration_ms=float(row["duration_ms"]),
        longest_ms=float(row["longest_ms"]),
        **counts,
    )


def read_by_topic(store: ControlStore, summary: BatchSummary) -> Mapping[str, int]:
    """How many records of each topic the batches of a summary read."""
    of_stream = batches.c.stream == summary.stream
    query = select(batches.c.accounts).where(
        of_stream, batches.c.batch_id.between(summary.first, summary.last)
    )
    read: Counter[str] = Counter()
    with store.engine.connect() as connection:
        for accounts in connection.execute(query).scalars():
            for account in accounts:
                read[account["topic"]] += account["read"]
    return read


def rows_given(store: ControlStore, summary: BatchSummary) -> Mapping[str, int]:
    """How many rows the batches of a summary gave to each table and topic; nothing where one does not tell.

    A table of newest values is given a row for each window that a batch shows, however often it did before.
    """
    of_stream = batches.c.stream == summary.stream
    query = select(batches.c.given, batches.c.rows).where(
        of_stream, batches.c.batch_id.between(summary.first, summary.last)
    )
    given: Counter[str] = Counter()
    with store.engine.connect() as connection:
        for told, rows in connection.execute(query):
            if rows and not told:  # a host of an older version wrote it
                return {}
            given.update(told)
    return given


def summaries(
    store: ControlStore, stream: str, after: int, step_ms: int, most: int
) -> Iterator[BatchSummary]:
    """What a stream did after a batch, from old to new, in stretches of its batches' own clock.

    A stretch is no longer than `step_ms`, unless there would be more than about `most` of them.
    """
    if (span_ms := _span_ms(store, stream, after)) is None:
        return
    step_ms, following = max(step_ms, ceil(span_ms / most)), True
    while following:
        end = _end_of_stretch(store, stream, after, step_ms) if span_ms >= step_ms else None
        if summary := summarise(store, stream, after, end):
            yield summary
            after = summary.last
        following = end is not None


def _span_ms(store: ControlStore, stream: str, after: int) -> int | None:
    """How long the batches after one took by their own clock; None where there is none."""
    clocks = select(batches.c.clock_ms).where(batches.c.stream == stream, batches.c.batch_id > after)
    ends = [
        clocks.order_by(order).limit(1).scalar_subquery()
        for order in (batches.c.batch_id, batches.c.batch_id.desc())
    ]
    with store.engine.connect() as connection:
        first, last = connection.execute(select(*ends)).one()
    return None if first is None else last - first


def _end_of_stretch(store: ControlStore, stream: str, after: int, step_ms: int) -> int | None:
    """The first batch that is `step_ms` younger than the one after `after`; None where none is."""
    mine = batches.c.stream == stream, batches.c.batch_id > after
    begin = select(batches.c.clock_ms).where(*mine).order_by(batches.c.batch_id).limit(1).scalar_subquery()
    younger = select(batches.c.batch_id).where(*mine, batches.c.clock_ms >= begin + step_ms)
    with store.engine.connect() as connection:
        found: int | None = connection.execute(younger.order_by(batches.c.batch_id).limit(1)).scalar()
        return found


def overview(store: ControlStore) -> list[StreamOverview]:
    """Every stream that anybody asked for, or that ever wrote."""
    desired = store.desired()
    with store.engine.connect() as connection:
        since = {row.stream: row.changed_at_ms for row in connection.execute(select(streams))}
        held = {row["stream"]: Lease(**row) for row in connection.execute(select(leases)).mappings()}
        told = {row["stream"]: StreamHealth(**row) for row in connection.execute(select(health)).mappings()}
        waits = {row["stream"]: Waiting(**row) for row in connection.execute(select(waiting)).mappings()}
        rows = connection.execute(_newest_batches()).mappings()
        last = {row["stream"]: batch_record(dict(row)) for row in rows}
    return [
        StreamOverview(
            stream=stream,
            desired=desired.get(stream),
            desired_at_ms=since.get(stream, 0),
            lease=held.get(stream),
            last=last.get(stream),
            health=told.get(stream),
            waiting=_still(waits.get(stream), held.get(stream), last.get(stream)),
        )
        for stream in sorted({*desired, *held})
    ]


def _still(told: Waiting | None, lease: Lease | None, last: BatchRecord | None) -> Waiting | None:
    """What was said of records that wait, where it still is so: by who has the lease, and no batch came since."""
    if told is None or lease is None or told.epoch != lease.epoch or not told.records:
        return None
    return told if told.batch_id == (-1 if last is None else last.batch_id) else None


def _newest_batches() -> Select[Any]:
    """The newest batch of each stream, by one statement that goes down the table's key once a stream."""
    known = select(streams.c.stream).union(select(leases.c.stream)).subquery()
    of_stream = batches.alias()
    newest = select(func.max(of_stream.c.batch_id)).where(of_stream.c.stream == known.c.stream)
    return select(batches).join(
        known,
        (batches.c.stream == known.c.stream)
        & (batches.c.batch_id == newest.correlate(known).scalar_subquery()),
    )


_SUMMED = (*COUNTS, *(f"panes_{timing}" for timing in TIMINGS), "rows", "duration_ms")


def history(store: ControlStore, stream: str) -> list[BatchRecord]:
    """Every batch of a stream that the store knows and no replay replaced, from old to young."""
    mine = batches.c.stream == stream, ~batches.c.replaced
    query = select(batches).where(*mine).order_by(batches.c.batch_id)
    with store.engine.connect() as connection:
        return [batch_record(dict(row)) for row in connection.execute(query).mappings()]


def has_rows(store: ControlStore, stream: str) -> bool:
    """Whether a stream ever wrote a row."""
    query = select(batches.c.batch_id).where(batches.c.stream == stream, batches.c.rows > 0).limit(1)
    with store.engine.connect() as connection:
        return connection.execute(query).first() is not None
