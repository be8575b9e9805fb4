"""Removes what the control store has about one stream."""

from sqlalchemy import delete

from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import backlogs, batches, health, leases, replays, streams


def remove_stream_records(store: ControlStore, stream: str) -> None:
    """Remove the batches, replays, health, backlog, lease and desired state of a stream, in one transaction."""
    with store.engine.begin() as connection:
        for table in (batches, replays, health, backlogs, leases, streams):
            connection.execute(delete(table).where(table.c.stream == stream))
