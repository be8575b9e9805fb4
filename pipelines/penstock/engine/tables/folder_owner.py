"""The owner of the folder of a sink that is not a Delta table: a file in it, checked when the sink is opened."""

import msgspec

from penstock.engine.errors import TableOwnedError
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import make_parent_folder, write_text
from penstock.engine.tables.table_owner import TableClaim, TableOwner

OWNER_FILE = "_owner.json"


def read_folder_owner(folder: StoragePath) -> TableOwner | None:
    """Return the owner of a folder; None if none is recorded."""
    try:
        return msgspec.json.decode((folder / OWNER_FILE).read_bytes(), type=TableOwner)
    except FileNotFoundError:
        return None


def record_folder_owner(folder: StoragePath, owner: TableOwner) -> None:
    """Record the owner of a folder."""
    make_parent_folder(folder / OWNER_FILE)
    write_text(folder / OWNER_FILE, msgspec.json.encode(owner).decode())


def claim_folder(folder: StoragePath, claim: TableClaim) -> None:
    """Make sure that the claim is that of the owner; adopt a folder without an owner.

    Raises TableOwnedError if the folder belongs to another writer.
    """
    owner = read_folder_owner(folder)
    if owner is None:
        record_folder_owner(folder, claim.owner)
    elif not owner.is_same_writer(claim.owner):
        raise TableOwnedError(str(folder), str(owner), str(claim.owner), claim.owner.stream)
