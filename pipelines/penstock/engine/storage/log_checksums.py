"""Finds damage in the entries of a Delta log: each commit of Penstock has a checksum of its actions.

The checksum is in the first line of an entry, `commitInfo`. Entries of other programs need only be JSON.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

DELTA_LOG_FOLDER = "_delta_log"
CHECKSUM_PROPERTY = "penstock.crc32"
"""In the `commitInfo` of an entry: the checksum of its added and removed files and of its transactions."""
MAX_CACHED_ENTRIES = 20_000
_CHECKPOINT_NAME = re.compile(r"([0-9]{20})\.checkpoint\.parquet")


def verify_log(table: Path, version: int) -> None:
    """Raise OSError if an entry that this version of a table is read from is damaged.

    These are the entries after the newest checkpoint. An entry that was verified is not read again while it is
    unchanged.
    """
    folder = table / DELTA_LOG_FOLDER
    checkpoints = [
        int(found[1]) for path in folder.iterdir() if (found := _CHECKPOINT_NAME.fullmatch(path.name))
    ]
    base = max((number for number in checkpoints if number <= version), default=-1)
    for number in range(base + 1, version + 1):
        path = folder / f"{number:020d}.json"
        try:
            status = path.stat()
        except FileNotFoundError:  # a newer checkpoint has replaced it since the table was opened
            continue
        if damage := _find_file_damage(path, status.st_size, status.st_mtime_ns):
            raise OSError(
                f"{path} is damaged: {damage}. After a power cut, start the stream of the table, which repairs it"
            )


@lru_cache(MAX_CACHED_ENTRIES)
def _find_file_damage(path: Path, _size: int, _modified_ns: int) -> str:
    return find_entry_damage(path.read_bytes(), is_first=path.name.strip("0") == ".json")


def find_entry_damage(content: bytes, *, is_first: bool) -> str:
    """Return what is wrong with an entry; empty if it is whole. The first entry of a log creates the table."""
    lines = content.splitlines()
    if not lines:
        return "it is empty"
    try:
        actions: list[dict[str, Any]] = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        return f"it is not JSON ({problem})"
    expected = actions[0].get("commitInfo", {}).get(CHECKSUM_PROPERTY)
    if expected is not None and expected != checksum_actions(_describe_actions(actions)):
        return "its checksum is wrong"
    if is_first and not all(any(name in action for action in actions) for name in ("protocol", "metaData")):
        return "it does not create the table"
    return ""


def describe_add(path: str, size: object, stats: object) -> str:
    """Return the text of an added file of which the checksum is computed."""
    return f"add {path} {size} {stats}"


def describe_remove(path: str) -> str:
    """Return the text of a removed file of which the checksum is computed."""
    return f"remove {path}"


def describe_transaction(application: object, version: object) -> str:
    """Return the text of a transaction of which the checksum is computed."""
    return f"txn {application} {version}"


def checksum_actions(descriptions: Iterable[str]) -> str:
    """Return the checksum of the texts of an entry's actions, in any order."""
    content = "\n".join(sorted(descriptions)).encode()
    return f"{zlib.crc32(content):08x}"


def _describe_actions(actions: Iterable[dict[str, Any]]) -> Iterator[str]:
    for action in actions:
        if add := action.get("add"):
            yield describe_add(unquote(add.get("path", "")), add.get("size"), add.get("stats"))
        if remove := action.get("remove"):
            yield describe_remove(unquote(remove.get("path", "")))
        if transaction := action.get("txn"):
            yield describe_transaction(transaction.get("appId"), transaction.get("version"))
