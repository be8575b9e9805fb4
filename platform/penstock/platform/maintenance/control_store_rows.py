"""Removal of expired rows of the control store."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Table, and_, delete, func, select

from penstock.platform.control import ControlStore
from penstock.platform.control.tables import batches, hosts

ROWS_PER_TRANSACTION = 10_000
"""How many batches one transaction removes: hosts that renew their leases wait for it."""


def prune_batches(store: ControlStore, before_ms: int, *, dry_run: bool) -> int:
    """Remove batches older than a time, except the newest of each stream; return their number.

    Hosts write at the same time, so no transaction touches many rows, and none reads before it writes.
    """
    newest_query = select(batches.c.stream, func.max(batches.c.batch_id).label("last")).group_by(
        batches.c.stream
    )
    with store.engine.connect() as connection:
        streams = connection.execute(newest_query).all()
    return sum(
        _delete_rows(store, batches, old_range, dry_run)
        for stream, last_batch in streams
        for old_range in _iter_old_ranges(store, stream, last_batch, before_ms)
    )


def _iter_old_ranges(
    store: ControlStore, stream: str, last_batch: int, before_ms: int
) -> Iterator[ColumnElement[bool]]:
    """Yield the expired rows of a stream in small ranges, up to the first that is not expired.

    Batch times never decrease, so it can stop there. Reading every row would take minutes after a month.
    """
    start, is_old, is_all_old = 0, batches.c.clock_ms < before_ms, True
    while start < last_batch and is_all_old:
        remaining = select(batches.c.batch_id).where(
            batches.c.stream == stream, batches.c.batch_id.between(start, last_batch - 1)
        )
        with store.engine.connect() as connection:
            next_start_query = remaining.order_by(batches.c.batch_id).offset(ROWS_PER_TRANSACTION).limit(1)
            end = connection.execute(next_start_query).scalar() or last_batch
            in_range = and_(batches.c.stream == stream, batches.c.batch_id >= start, batches.c.batch_id < end)
            is_all_old = (
                connection.execute(select(batches.c.batch_id).where(in_range, ~is_old).limit(1)).first()
                is None
            )
        yield in_range & is_old
        start = end


def prune_hosts(store: ControlStore, before_ms: int, *, dry_run: bool) -> int:
    """Remove hosts that have not reported since a time; return their number."""
    return _delete_rows(store, hosts, hosts.c.seen_at_ms < before_ms, dry_run)


def _delete_rows(store: ControlStore, table: Table, is_old: ColumnElement[bool], dry_run: bool) -> int:
    with store.engine.begin() as connection:
        if dry_run:
            return connection.execute(select(func.count()).select_from(table).where(is_old)).scalar_one()
        return connection.execute(delete(table).where(is_old)).rowcount
