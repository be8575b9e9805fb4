"""The log of a Delta table in a folder: the checksum of a commit, and which of its files must be synced.

Delta's library syncs nothing, and it reads an entry that was cut off at a line, or an empty one, as if it were
whole. So each commit of Penstock records a checksum of its actions in the first line of its entry, `commitInfo`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction

from penstock.engine.storage.log_checksums import (
    CHECKSUM_PROPERTY,
    DELTA_LOG_FOLDER,
    checksum_actions,
    describe_add,
    describe_remove,
    describe_transaction,
)


def build_commit_properties(
    adds: Iterable[AddAction],
    removed_paths: Iterable[str],
    transactions: Sequence[Transaction] = (),
    max_commit_retries: int | None = None,
) -> CommitProperties:
    """Return the properties of a commit that adds and removes these files."""
    parts = [
        *(describe_add(action.path, action.size, action.stats) for action in adds),
        *(describe_remove(path) for path in removed_paths),
        *(describe_transaction(each.app_id, each.version) for each in transactions),
    ]
    return CommitProperties(
        custom_metadata={CHECKSUM_PROPERTY: checksum_actions(parts)},
        max_commit_retries=max_commit_retries,
        app_transactions=list(transactions) or None,
    )


def entry_path(table: Path, version: int) -> Path:
    """Return the entry of a version."""
    return table / DELTA_LOG_FOLDER / f"{version:020d}.json"


def find_newest_version(table: Path, known_version: int) -> int:
    """Return the newest version in the folder, from one that is known to be there."""
    while entry_path(table, known_version + 1).exists():
        known_version += 1
    return known_version


def list_log_files(table: Path, first: int, last: int) -> list[Path]:
    """Return the entries of these versions, and the checkpoints among them."""
    folder = table / DELTA_LOG_FOLDER
    versions = range(max(first, 0), last + 1)
    checkpoints = [
        path for version in versions if (path := folder / f"{version:020d}.checkpoint.parquet").exists()
    ]
    hints = [folder / "_last_checkpoint"] if checkpoints else []
    return [*(entry_path(table, version) for version in versions), *checkpoints, *hints]
