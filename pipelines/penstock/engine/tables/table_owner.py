"""The owner of a table: the one stream of one installation that may write it.

The owner is a property of the Delta table. A commit reads the newest metadata of its table anyway, so the check
needs no request. When the owner changes between the check and the commit, Delta refuses the commit, because the
metadata changed.

A table of release 0.1.0 has no owner. The stream whose batches are in it adopts it, if the stream's journal knows
these batches.
"""

from dataclasses import dataclass

import msgspec
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from penstock.engine.errors import TableOwnedError
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.table_writers import OWNER_PROPERTY, list_table_writers

MAX_ADOPTION_ATTEMPTS = 5


class TableOwner(msgspec.Struct, frozen=True):
    """A stream, the id of its folder, and where that folder was when the owner was recorded."""

    stream: str
    writer_id: str
    installation: str = ""

    def is_same_writer(self, other: "TableOwner") -> bool:
        """Whether both are the same stream with the same state. A state that is moved keeps its id."""
        return (self.stream, self.writer_id) == (other.stream, other.writer_id)

    def __str__(self) -> str:
        """Return the stream and its installation."""
        return f"stream {self.stream}" + (f" of {self.installation}" if self.installation else "")


@dataclass(frozen=True)
class TableClaim:
    """What a writer says of itself: its identity, and the newest batch in its journal; -1 for none."""

    owner: TableOwner
    last_batch: int = -1


def read_table_owner(table: DeltaTable) -> TableOwner | None:
    """Return the owner of a loaded version of a table; None if none is recorded."""
    text = table.metadata().configuration.get(OWNER_PROPERTY)
    return None if text is None else msgspec.json.decode(text, type=TableOwner)


def find_table_owner(path: StoragePath) -> TableOwner | None:
    """Return the owner of the table at a path; None if there is no table, or none is recorded."""
    try:
        return read_table_owner(open_delta_table(path))
    except (TableNotFoundError, DeltaError):
        return None


def record_table_owner(table: DeltaTable, owner: TableOwner) -> None:
    """Record the owner of a table. Commits of other writers that are in progress fail."""
    owner_json = msgspec.json.encode(owner).decode()
    table.alter.set_table_properties({OWNER_PROPERTY: owner_json}, raise_if_not_exists=False)


def check_table_owner(table: DeltaTable, path: StoragePath, claim: TableClaim) -> bool:
    """Return whether the claim is that of the recorded owner, False if none is recorded.

    Raises TableOwnedError if the table belongs to another writer.
    """
    owner = read_table_owner(table)
    if owner is not None and not owner.is_same_writer(claim.owner):
        raise TableOwnedError(str(path), str(owner), str(claim.owner), claim.owner.stream)
    return owner is not None


def claim_table(table: DeltaTable, path: StoragePath, claim: TableClaim) -> None:
    """Make sure that the claim is that of the owner; adopt a table without an owner.

    Raises TableOwnedError if the table belongs to another writer, or if others have written it.
    """
    for _ in range(MAX_ADOPTION_ATTEMPTS):
        if check_table_owner(table, path, claim):
            return
        _refuse_batches_of_others(table, path, claim)
        try:
            record_table_owner(table, claim.owner)
        except CommitFailedError:  # another writer committed meanwhile, and may have adopted the table
            table.update_incremental()
    raise OSError(f"{path}: other writers commit all the time, so its owner cannot be recorded. Stop them")


def _refuse_batches_of_others(table: DeltaTable, path: StoragePath, claim: TableClaim) -> None:
    """Raise TableOwnedError unless a table without an owner is empty, or holds batches that the claim knows."""
    stream = claim.owner.stream
    own_batch = table.transaction_version(stream)
    if own_batch is not None and own_batch <= claim.last_batch:
        return
    if own_batch is not None:
        former_owner = f"a stream {stream} of another installation, which wrote batch {own_batch}"
        raise TableOwnedError(str(path), former_owner, str(claim.owner), stream)
    writers = list_table_writers(path)
    if writers:
        names = ", ".join(f"stream {writer}" for writer in sorted(writers))
        raise TableOwnedError(str(path), names, str(claim.owner), stream)
    if table.file_uris():
        raise TableOwnedError(str(path), "a program other than Penstock", str(claim.owner), stream)
