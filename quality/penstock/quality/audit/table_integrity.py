"""Checks that a Delta table is complete: its files, its columns and its commits."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import DELTA_LOG_FOLDER, file_size, read_file_contents
from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.errors import DamagedTableError
from penstock.quality.table_reads import COMMIT_FILE_PATTERN, describe_missing_columns, open_table


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
    yield from _find_double_commits(path, table)
    newest_batch = delta.transaction_version(requirements.writer)
    if requirements.batch > (-1 if newest_batch is None else newest_batch):
        state_text = f"its newest batch is {newest_batch}" if newest_batch is not None else "it has no batch"
        yield AuditDifference(
            table, f"{requirements.writer} committed batch {requirements.batch} to it, but {state_text}"
        )


def _find_double_commits(path: StoragePath, table: str) -> Iterator[AuditDifference]:
    """Yield batches that two commits contain. Batch numbers of a writer increase with the table version."""
    newest_by_writer: dict[str, tuple[int, int]] = {}
    logs = sorted(
        (
            log_file
            for log_file in (path / DELTA_LOG_FOLDER).iterdir()
            if COMMIT_FILE_PATTERN.fullmatch(log_file.name)
        ),
        key=lambda log_file: log_file.name,
    )
    for log, content in zip(logs, read_file_contents(logs), strict=True):
        version = int(log.name.partition(".")[0])
        try:
            actions = [json.loads(line) for line in content.decode().splitlines() if '"txn"' in line]
        except ValueError as problem:
            yield AuditDifference(f"{table}, version {version}", f"its log entry cannot be read: {problem}")
            continue
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
