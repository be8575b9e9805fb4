"""Checks that a Delta table is complete: its files, its columns and its commits."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.storage.arrow_delta_table import ArrowDeltaTable
from penstock.engine.storage.file_access import file_size, read_file_contents
from penstock.engine.storage.log_checksums import DELTA_LOG_FOLDER, find_entry_damage
from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.errors import DamagedTableError
from penstock.quality.table_reads import COMMIT_FILE_PATTERN, describe_missing_columns, open_table

LogEntry: TypeAlias = tuple[int, bytes]
"""The version of a commit, and the content of its file."""


@dataclass(frozen=True)
class TableRequirements:
    """The columns that a table must have, and the newest batch that its writer committed."""

    columns: Collection[str] = ()
    writer: str = ""
    batch: int = -1


def check_table_files(
    path: StoragePath, table: str, requirements: TableRequirements = TableRequirements()
) -> Iterator[AuditDifference]:
    """Yield missing and resized files of a table, and batches that were committed twice or not at all.

    A table that does not exist yields nothing. A table that cannot be opened or that lacks a column yields one
    difference.
    """
    try:
        delta = open_table(path)
    except DamagedTableError as problem:
        yield AuditDifference(table, problem.finding)
        return
    if delta is None:
        return
    try:
        delta.verify()
    except OSError as damage:
        yield AuditDifference(table, str(damage))
        return
    if missing_columns := describe_missing_columns(delta, requirements.columns):
        yield AuditDifference(table, missing_columns)
        return
    for row in pa.table(delta.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist():
        size = file_size(path / row["path"])
        if size is None:
            yield AuditDifference(
                f"{table}, file {row['path']}", "the table lists it, but the file is missing"
            )
        elif size != row["size_bytes"]:
            yield AuditDifference(
                f"{table}, file {row['path']}",
                f"has {size} bytes; the commit recorded {row['size_bytes']}",
            )
    log = _read_log(path)
    yield from _find_checkpoint_differences(table, delta, log)
    yield from _find_double_commits(table, log)
    newest_batch = delta.transaction_version(requirements.writer)
    if requirements.batch > (-1 if newest_batch is None else newest_batch):
        state_text = f"its newest batch is {newest_batch}" if newest_batch is not None else "it has no batch"
        yield AuditDifference(
            table, f"{requirements.writer} committed batch {requirements.batch} to it, but {state_text}"
        )


def _find_checkpoint_differences(
    table: str, delta: ArrowDeltaTable, log: Sequence[LogEntry]
) -> Iterator[AuditDifference]:
    """Yield files that a checkpoint of the log has wrongly, or lacks: it has no checksum, but the entries have.

    Only a log that still has all entries can tell.
    """
    entries = log[: delta.version() + 1]
    if len(entries) <= delta.version():
        return
    expected: dict[str, int] = {}
    for _, content in entries:
        if find_entry_damage(content, is_first=False):
            return  # reported with its version
        for line in content.splitlines():
            action = msgspec.json.decode(line, type=dict[str, Any])
            if add := action.get("add"):
                expected[unquote(add["path"])] = add["size"]
            if remove := action.get("remove"):
                expected.pop(unquote(remove["path"]), None)
    found = {
        row["path"]: row["size_bytes"] for row in pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    }
    for file in sorted({*expected, *found}):
        if expected.get(file) != found.get(file):
            yield AuditDifference(
                f"{table}, file {file}",
                f"has {found.get(file, 'no')} bytes by the checkpoint, and {expected.get(file, 'no')} by the log",
            )


def _read_log(path: StoragePath) -> list[LogEntry]:
    """Return the entries of the log that are still there, oldest first."""
    files = sorted(
        (file for file in (path / DELTA_LOG_FOLDER).iterdir() if COMMIT_FILE_PATTERN.fullmatch(file.name)),
        key=lambda file: file.name,
    )
    versions = (int(file.name.partition(".")[0]) for file in files)
    return list(zip(versions, read_file_contents(files), strict=True))


def _find_double_commits(table: str, log: Sequence[LogEntry]) -> Iterator[AuditDifference]:
    """Yield batches that two commits contain. Batch numbers of a writer increase with the table version."""
    newest_by_writer: dict[str, tuple[int, int]] = {}
    for version, content in log:
        if damage := find_entry_damage(content, is_first=version == 0):
            yield AuditDifference(f"{table}, version {version}", f"its log entry cannot be read: {damage}")
            continue
        actions = [json.loads(line) for line in content.splitlines() if b'"txn"' in line]
        for action in actions:
            if "txn" in action:
                writer, batch = action["txn"]["appId"], action["txn"]["version"]
                previous = newest_by_writer.get(writer)
                if previous is not None and batch <= previous[1]:
                    yield AuditDifference(
                        f"{table}, version {version}",
                        f"has batch {batch} of {writer}; version {previous[0]} already has batch {previous[1]}",
                    )
                newest_by_writer[writer] = (version, batch)
