"""Rows of the control store that nobody asks for any more."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Table, and_, delete, func, select

from penstock.platform.control import ControlStore
from penstock.platform.control.tables import batches, hosts

AT_A_TIME = 10_000
"""How many rows of batches go in one transaction: hosts that are to renew their leases wait for it meanwhile."""


def forget_batches(store: ControlStore, before_ms: int, *, dry_run: bool) -> int:
    """Remove rows of batches older than a moment; the newest of each stream stays. Returns how many.

    Hosts write meanwhile: no transaction touches many rows, and none of them reads before it writes.
    """
    newest = select(batches.c.stream, func.max(batches.c.batch_id).label("last")).group_by(batches.c.stream)
    with store.engine.connect() as connection:
        streams = connection.execute(newest).all()
    return sum(
        _removed(store, batches, part, dry_run)
        for stream, last in streams
        for part in _parts(store, stream, last, before_ms)
    )


def _parts(store: ControlStore, stream: str, last: int, before_ms: int) -> Iterator[ColumnElement[bool]]:
    """The rows of a stream that are old, a few at a time, up to the first that is not.

    A batch's clock never goes back, and to look at every row would take minutes after a month.
    """
    begin, old, all_old = 0, batches.c.clock_ms < before_ms, True
    while begin < last and all_old:
        rest = select(batches.c.batch_id).where(
            batches.c.stream == stream, batches.c.batch_id.between(begin, last - 1)
        )
        with store.engine.connect() as connection:
            following = rest.order_by(batches.c.batch_id).offset(AT_A_TIME).limit(1)
            end = connection.execute(following).scalar() or last
            part = and_(batches.c.stream == stream, batches.c.batch_id >= begin, batches.c.batch_id < end)
            all_old = (
                connection.execute(select(batches.c.batch_id).where(part, ~old).limit(1)).first() is None
            )
        yield part & old
        begin = end


def forget_hosts(store: ControlStore, before_ms: int, *, dry_run: bool) -> int:
    """Remove hosts that were not heard of since a moment. Returns how many."""
    return _removed(store, hosts, hosts.c.seen_at_ms < before_ms, dry_run)


def _removed(store: ControlStore, table: Table, old: ColumnElement[bool], dry_run: bool) -> int:
    with store.engine.begin() as connection:
        if dry_run:
            return connection.execute(select(func.count()).select_from(table).where(old)).scalar_one()
        return connection.execute(delete(table).where(old)).rowcount
