"""What a stream says of itself to its tables: the id of its folder, and the newest batch of its journal."""

import socket
from pathlib import Path

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.stream_folders import load_or_create_writer_id, resolve_stream_folder
from penstock.engine.tables.table_owner import TableClaim, TableOwner


def make_stream_claim(streams: Path, stream: str) -> TableClaim:
    """Return the claim of a stream, whose folder gets an id if it has none.

    Two copies of a home have the same ids: after a copy, start only one of them on the same warehouse.
    """
    installation = f"{socket.gethostname()}:{streams.absolute().parent}"
    owner = TableOwner(stream, load_or_create_writer_id(streams, stream), installation)
    last_outcome = BatchJournal(resolve_stream_folder(streams, stream) / "journal").read_last_outcome()
    return TableClaim(owner, -1 if last_outcome is None else last_outcome.batch_id)
