"""Makes the log of a Delta table readable after a power cut, when its writer opens it.

A power cut may tear or lose what was not synced yet: the entries of the last batches, and a new checkpoint. A torn
entry becomes an empty commit, and the last outcome of the stream is committed again. A torn checkpoint is removed:
the entries that it sums up are still there. Damage of an older entry cannot be undone, and is an error.
"""

import logging
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core.files import write_atomically
from penstock.engine.errors import DamagedEntryError
from penstock.engine.storage.log_checksums import DELTA_LOG_FOLDER, find_entry_damage
from penstock.engine.tables.log_entries import entry_path

log = logging.getLogger(__name__)

MAX_UNSYNCED_ENTRIES = 50
"""How many of the newest entries are checked. Each writer leaves one or two that are not synced."""
LAST_CHECKPOINT_HINT = "_last_checkpoint"
_ENTRY_NAME = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT_NAME = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_EMPTY_COMMIT = {"commitInfo": {"operation": "REPAIR", "operationParameters": {}}}


def recover_log(table: Path, application: str) -> None:
    """Replace torn entries, and remove a torn checkpoint. Raises DamagedEntryError for damage of older files."""
    folder = table / DELTA_LOG_FOLDER
    if not folder.is_dir():
        return
    names = [path.name for path in folder.iterdir()]
    versions = sorted(int(match[1]) for name in names if (match := _ENTRY_NAME.fullmatch(name)))
    checkpoints = sorted(int(match[1]) for name in names if (match := _CHECKPOINT_NAME.fullmatch(name)))
    if LAST_CHECKPOINT_HINT in names or checkpoints:
        _recover_checkpoint(folder, checkpoints, versions)
    if versions:
        first = 0 if not checkpoints else versions[0]  # entries before a checkpoint may have been removed
        _recover_entries(table, first, versions[-1], application)


def _recover_entries(table: Path, first: int, newest: int, application: str) -> None:
    """Go from the newest entry back; count by application the batches that follow an entry."""
    later_batches: Counter[str] = Counter()
    for version in range(newest, max(first, newest - MAX_UNSYNCED_ENTRIES) - 1, -1):
        path = entry_path(table, version)
        content = path.read_bytes() if path.exists() else b""
        damage = find_entry_damage(content, is_first=version == 0)
        if not damage:
            later_batches.update(_list_applications(content))
        elif version == 0 and not later_batches:
            log.warning("Torn table removed; it is created again (%s: %s)", path, damage)
            for torn_version in range(newest + 1):
                entry_path(table, torn_version).unlink(missing_ok=True)
        elif version == 0 or _was_synced(later_batches, application):
            raise DamagedEntryError(path, f"is damaged: {damage}, and later batches follow it")
        else:
            log.warning("Torn commit replaced by an empty one (%s: %s)", path, damage)
            write_atomically(path, msgspec.json.encode(_EMPTY_COMMIT) + b"\n")


def _was_synced(later_batches: Mapping[str, int], application: str) -> bool:
    """Whether an entry was synced, by the batches that follow it.

    A batch is committed after the entries that its writer knew were synced. In a table of several streams, the
    entry may be of another one, whose next batch would sync it.
    """
    is_shared = bool(later_batches.keys() - {application})
    return max(later_batches.values(), default=0) > (1 if is_shared else 0)


def _list_applications(content: bytes) -> list[str]:
    actions = (msgspec.json.decode(line) for line in content.splitlines())
    return [action["txn"]["appId"] for action in actions if "txn" in action]


def _recover_checkpoint(folder: Path, checkpoints: list[int], versions: list[int]) -> None:
    """Remove the newest checkpoint if it cannot be read, and the hint if it names another file."""
    hint = folder / LAST_CHECKPOINT_HINT
    newest = checkpoints[-1] if checkpoints else -1
    if checkpoints and not _is_readable(path := folder / f"{newest:020d}.checkpoint.parquet"):
        base = max((version for version in checkpoints[:-1]), default=-1)
        if not set(range(base + 1, newest + 1)) <= set(versions):
            raise DamagedEntryError(path, "is damaged, and the entries that it sums up were removed")
        log.warning("Torn checkpoint removed (%s)", path)
        path.unlink()
        newest = base
    if hint.exists() and _read_hint(hint) != newest:
        hint.unlink()


def _is_readable(checkpoint: Path) -> bool:
    try:
        pq.read_table(checkpoint)
    except (pa.ArrowException, OSError):
        return False
    return True


def _read_hint(hint: Path) -> int | None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        version = msgspec.json.decode(hint.read_bytes(), type=dict[str, object]).get("version")
        return version if isinstance(version, int) else None
    return None
