"""The log of a Delta table in a folder: which of its files must be synced, and which entries are whole.

Delta's library syncs nothing, and it reads an entry that was cut off at a line, or an empty one, as if it were
whole. So each commit of Penstock records a checksum of its actions in the first line of its entry, `commitInfo`.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction

from penstock.engine.storage.file_access import DELTA_LOG_FOLDER

CHECKSUM_PROPERTY = "penstock.crc32"
"""In the `commitInfo` of an entry: the checksum of its added and removed files and of its transactions."""


def build_commit_properties(
    adds: Iterable[AddAction],
    removed_paths: Iterable[str],
    transactions: Sequence[Transaction] = (),
    max_commit_retries: int | None = None,
) -> CommitProperties:
    """Return the properties of a commit that adds and removes these files."""
    parts = [
        *(_describe_add(action.path, action.size, action.stats) for action in adds),
        *(_describe_remove(path) for path in removed_paths),
        *(_describe_transaction(each.app_id, each.version) for each in transactions),
    ]
    return CommitProperties(
        custom_metadata={CHECKSUM_PROPERTY: _checksum(parts)},
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


def find_entry_damage(content: bytes, *, is_first: bool) -> str:
    """Return what is wrong with an entry; empty if it is whole. Entries of other programs need only be JSON.

    The first entry of a log creates the table.
    """
    lines = content.splitlines()
    if not lines:
        return "it is empty"
    try:
        actions: list[dict[str, Any]] = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        return f"it is not JSON ({problem})"
    expected = actions[0].get("commitInfo", {}).get(CHECKSUM_PROPERTY)
    if expected is not None and expected != _checksum(_describe_actions(actions)):
        return "its checksum is wrong"
    if is_first and not all(any(name in action for action in actions) for name in ("protocol", "metaData")):
        return "it does not create the table"
    return ""


def _describe_actions(actions: Iterable[dict[str, Any]]) -> Iterator[str]:
    for action in actions:
        if add := action.get("add"):
            yield _describe_add(unquote(add.get("path", "")), add.get("size"), add.get("stats"))
        if remove := action.get("remove"):
            yield _describe_remove(unquote(remove.get("path", "")))
        if transaction := action.get("txn"):
            yield _describe_transaction(transaction.get("appId"), transaction.get("version"))


def _describe_add(path: str, size: object, stats: object) -> str:
    return f"add {path} {size} {stats}"


def _describe_remove(path: str) -> str:
    return f"remove {path}"


def _describe_transaction(application: object, version: object) -> str:
    return f"txn {application} {version}"


def _checksum(parts: Iterable[str]) -> str:
    content = "\n".join(sorted(parts)).encode()
    return f"{zlib.crc32(content):08x}"
