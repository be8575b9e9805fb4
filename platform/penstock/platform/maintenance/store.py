"""Rows of the control store that nobody asks for any more."""

from sqlalchemy import ColumnElement, Table, and_, delete, func, select

from penstock.platform.control import ControlStore
from penstock.platform.control.tables import batches, hosts


def forget_batches(store: ControlStore, before_ms: int, *, dry_run: bool) -> int:
    """Remove rows of batches older than a moment; the newest of each stream stays. Returns how many.

    Hosts write meanwhile, so each stream is a transaction of its own, and none of them reads before it writes.
    """
    newest = select(batches.c.stream, func.max(batches.c.batch_id).label("last")).group_by(batches.c.stream)
    with store.engine.connect() as connection:
        streams = connection.execute(newest).all()
    return sum(
        _removed(
            store,
            batches,
            and_(batches.c.stream == stream, batches.c.batch_id < last, batches.c.clock_ms < before_ms),
            dry_run,
        )
        for stream, last in streams
    )


def forget_hosts(store: ControlStore, before_ms: int, *, dry_run: bool) -> int:
    """Remove hosts that were not heard of since a moment. Returns how many."""
    return _removed(store, hosts, hosts.c.seen_at_ms < before_ms, dry_run)


def _removed(store: ControlStore, table: Table, old: ColumnElement[bool], dry_run: bool) -> int:
    with store.engine.begin() as connection:
        if dry_run:
            return connection.execute(select(func.count()).select_from(table).where(old)).scalar_one()
        return connection.execute(delete(table).where(old)).rowcount
