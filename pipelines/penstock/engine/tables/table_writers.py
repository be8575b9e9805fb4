"""Who wrote a Delta table: the applications in its log, with their batches."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import (
    list_files,
    read_file_contents,
    read_parquet,
)
from penstock.engine.storage.log_checksums import DELTA_LOG_FOLDER

OWNER_PROPERTY = "penstock.owner"
"""The table property with its owner; see `table_owner`."""
_COMMIT_PATTERN = re.compile(r"(\d{20})\.json")
_CHECKPOINT_PATTERN = re.compile(r"(\d{20})\.checkpoint(?:\.\d+\.\d+)?\.parquet")


@dataclass(frozen=True)
class TableWriter:
    """An application that wrote a table: its newest batch, and the commit; both None if the log has ended."""

    application: str
    last_batch: int
    version: int | None = None
    committed_at_ms: int | None = None


def list_table_writers(path: StoragePath) -> Mapping[str, TableWriter]:
    """Return every application that wrote a table, by name."""
    return _read_writers(path, only_current=False)


def list_current_writers(path: StoragePath) -> Mapping[str, TableWriter]:
    """Return the applications whose rows may be in a table.

    The writers before the last replacement of all its rows are left out, and those before it was handed over.
    """
    return _read_writers(path, only_current=True)


def _read_writers(path: StoragePath, *, only_current: bool) -> Mapping[str, TableWriter]:
    log_files = [file for file, _ in list_files(path / DELTA_LOG_FOLDER)]
    commits = sorted((int(match[1]), file) for file, match in _match_names(_COMMIT_PATTERN, log_files))
    writers: dict[str, TableWriter] = {}
    if not commits or commits[0][0] > 0:  # older commits were removed; a checkpoint has their result
        writers.update(_read_checkpoint(log_files))
    owner: str | None = None
    for (version, _), content in zip(commits, read_file_contents([file for _, file in commits]), strict=True):
        actions = [json.loads(line) for line in content.splitlines() if line.strip()]
        previous_owner, owner = owner, _find_owner(actions, owner)
        is_handed_over = previous_owner is not None and owner != previous_owner
        if only_current and (is_handed_over or _replaces_all_rows(actions)):
            writers.clear()
        writers.update(_find_writers(actions, version))
    return writers


def _match_names(
    pattern: re.Pattern[str], files: Iterable[StoragePath]
) -> Iterator[tuple[StoragePath, re.Match[str]]]:
    matches = ((file, pattern.fullmatch(file.name)) for file in files)
    yield from ((file, match) for file, match in matches if match is not None)


def _read_checkpoint(log_files: Iterable[StoragePath]) -> Mapping[str, TableWriter]:
    """Return the writers in the oldest checkpoint; the commits after it are in the log."""
    checkpoints = sorted(
        (int(match[1]), file.name, file) for file, match in _match_names(_CHECKPOINT_PATTERN, log_files)
    )
    writers = {}
    for version, _, file in checkpoints:
        if version == checkpoints[0][0]:
            transactions = pa.table(read_parquet(file)).column("txn").to_pylist()
            for action in filter(None, transactions):
                if action["appId"] is not None:
                    writers[action["appId"]] = TableWriter(action["appId"], action["version"])
    return writers


def _find_writers(actions: Iterable[Mapping[str, Any]], version: int) -> Mapping[str, TableWriter]:
    committed_at_ms = next(
        (action["commitInfo"].get("timestamp") for action in actions if "commitInfo" in action), None
    )
    transactions = (action["txn"] for action in actions if "txn" in action)
    return {
        txn["appId"]: TableWriter(txn["appId"], txn["version"], version, committed_at_ms)
        for txn in transactions
    }


def _find_owner(actions: Iterable[Mapping[str, Any]], owner: str | None) -> str | None:
    """Return the owner that a commit records; if it records none, the one before it."""
    recorded = (action["metaData"]["configuration"] for action in actions if "metaData" in action)
    return next((entry.get(OWNER_PROPERTY, owner) for entry in recorded), owner)


def _replaces_all_rows(actions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a commit replaced all rows of the table, as that of a replay."""
    commit_infos = (action["commitInfo"] for action in actions if "commitInfo" in action)
    return any(info.get("operationParameters", {}).get("mode") == "Overwrite" for info in commit_infos)
