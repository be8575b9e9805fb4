"""A Delta table that commits each batch exactly once.

The rows of a batch are first written into files that no version of the table names. Later one commit adds them; it
carries (application, batch id). Both steps can be repeated. Every attempt writes new files, so a fenced host that
wakes up replaces nothing, and a batch that is committed is not committed again. Two concurrent writers cannot both
commit a batch: Delta refuses the one with an outdated last batch. Maintenance removes files that no version names.
"""

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import create_delta_table, file_size, open_delta_table, write_parquet
from penstock.engine.tables.file_statistics import build_file_statistics
from penstock.engine.tables.log_entries import build_commit_properties, find_newest_version, list_log_files
from penstock.engine.tables.log_recovery import recover_log
from penstock.engine.tables.table_change import DataFile, TableChange
from penstock.engine.tables.table_documentation import TableDocumentation, update_documentation
from penstock.engine.tables.table_owner import TableClaim, check_table_owner, claim_table

log = logging.getLogger(__name__)

CHECKPOINT_INTERVAL_COMMITS = 50
OBJECT_STORE_CHECKPOINT_INTERVAL_COMMITS = 10
"""Each commit reads all log entries since the last checkpoint; in an object store each read is a request."""
MAX_COMMIT_ATTEMPTS = 5
MAX_PARALLEL_OPENS = 8


class BatchTable:
    """One table. `application` identifies the writer, the name of the stream; a table may have several writers.

    Once a writer has claimed the table, each refresh before a commit checks that it still owns it.
    """

    def __init__(
        self,
        path: StoragePath,
        schema: pa.Schema,
        application: str,
        documentation: TableDocumentation | None = None,
    ) -> None:
        self.path = path
        self.schema = schema
        self.application = application
        self._documentation = documentation
        if isinstance(path, Path):
            recover_log(path, application)
        self._table = _open_or_create(path, schema, documentation)
        self._lock = RLock()
        self._is_fresh = False
        self._claim: TableClaim | None = None
        self._newest_version = self._table.version()
        self._synced_version = self._newest_version - CHECKPOINT_INTERVAL_COMMITS

    def claim(self, claim: TableClaim) -> None:
        """Claim the table for its only writer, and write its documentation if it lacks it.

        Raises TableOwnedError if it belongs to another one.
        """
        with self._lock:
            claim_table(self._table, self.path, claim)
            self._claim = claim
            self._document()

    def _document(self) -> None:
        if self._documentation is None:
            return
        try:
            update_documentation(self._table, self._documentation)
        except CommitFailedError:  # maintenance commits at this moment; the next start writes the texts
            log.info("Documentation not written; another commit came first (table=%s)", self.path)

    def read_last_batch(self) -> int:
        """Return the newest batch in the table; -1 before the first."""
        with self._lock:
            self._refresh()
            return self._last_committed_batch()

    def refresh_ahead(self) -> None:
        """Refresh the table now, in any thread, so that the next commit need not: it takes as long as a commit.

        If another writer commits meanwhile, the next commit refreshes again.
        """
        with self._lock:
            if not self._is_fresh:
                self._refresh()

    def commit(self, batch_id: int, change: TableChange, clock: int) -> bool:
        """Commit a batch's change once; return False when the batch is in the table already."""
        with self._lock:
            for attempt in range(MAX_COMMIT_ATTEMPTS):
                was_refreshed = attempt > 0 or not self._is_fresh
                if was_refreshed:
                    self._refresh()
                if self._last_committed_batch() >= batch_id:
                    return False
                try:
                    self._commit(batch_id, change, clock)
                except DeltaError as error:
                    # Another writer committed meanwhile: refresh, and retry unless it committed this batch.
                    is_conflict = isinstance(error, CommitFailedError) and attempt + 1 < MAX_COMMIT_ATTEMPTS
                    if was_refreshed and not is_conflict:
                        raise
                else:
                    self._is_fresh = False
                    return True
            return False

    def _refresh(self) -> None:
        self._is_fresh = False  # if the update fails, the next call refreshes again
        self._table.update_incremental()
        if self._claim is not None:
            check_table_owner(self._table, self.path, self._claim)
        self._is_fresh = True

    def _last_committed_batch(self) -> int:
        version = self._table.transaction_version(self.application)
        return -1 if version is None else version

    def write_file(self, rows: pa.Table, name: str, clock: int, **write_options: Any) -> DataFile:
        """Write rows into a new file with this name prefix and a unique suffix; no table version names it yet."""
        path = self.path / f"{name}-{uuid4().hex[:8]}.parquet"
        size = write_parquet(rows.cast(self.schema), path, store_schema=False, **write_options)
        return DataFile(path.name, size, rows.num_rows, build_file_statistics(rows), clock)

    def find_missing_file(self, change: TableChange) -> StoragePath | None:
        """Return a new file of a change that is not there with its size; None if all are."""
        files = ((self.path / file.path, file.size) for file in change.adds)
        return next((path for path, size in files if file_size(path) != size), None)

    def discard(self, files: Iterable[DataFile]) -> None:
        """Remove the files of an attempt that failed before an outcome or a table named them."""
        for file in files:
            (self.path / file.path).unlink(missing_ok=True)

    def list_unsynced_files(self, change: TableChange) -> list[Path]:
        """Return the new files of a change, and the log of all versions since the last call, for their sync.

        The first call returns the newest part of the log, as other processes may have written it. In an object
        store there is nothing to sync. It does not wait for a refresh of the table.
        """
        if not isinstance(self.path, Path):
            return []
        self._newest_version = find_newest_version(self.path, self._newest_version)
        log_files = list_log_files(self.path, self._synced_version + 1, self._newest_version)
        self._synced_version = self._newest_version
        return [*(self.path / file.path for file in change.adds), *log_files]

    def _commit(self, batch_id: int, change: TableChange, clock: int) -> None:
        adds = [AddAction(f.path, f.size, {}, f.written_at_ms, True, f.statistics) for f in change.adds]
        removes = [RemoveAction(path, True, clock) for path in change.removes]
        self._table.create_write_transaction(
            [*adds, *removes],
            mode="append",
            schema=self.schema,
            commit_properties=build_commit_properties(
                adds, change.removes, [Transaction(self.application, batch_id)]
            ),
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )


def claim_existing_tables(paths: Sequence[StoragePath], claim: TableClaim) -> None:
    """Claim the tables that exist, before they change. Raises TableOwnedError for a table of another writer."""
    with ThreadPoolExecutor(MAX_PARALLEL_OPENS) as pool:
        list(pool.map(lambda path: _claim_existing_table(path, claim), paths))


def _claim_existing_table(path: StoragePath, claim: TableClaim) -> None:
    with suppress(TableNotFoundError):
        claim_table(open_delta_table(path), path, claim)


def _open_or_create(
    path: StoragePath, schema: pa.Schema, documentation: TableDocumentation | None
) -> DeltaTable:
    documented_schema = schema if documentation is None else documentation.annotate(schema)
    description = None if documentation is None else documentation.description
    try:
        return _add_missing_columns(open_delta_table(path), documented_schema)
    except TableNotFoundError:
        return create_delta_table(
            path,
            documented_schema,
            description=description,
            configuration=checkpoint_configuration(path),
        )


def checkpoint_configuration(path: StoragePath) -> dict[str, str]:
    """Return Delta's configuration for the checkpoints of a new table's log."""
    interval = (
        CHECKPOINT_INTERVAL_COMMITS if isinstance(path, Path) else OBJECT_STORE_CHECKPOINT_INTERVAL_COMMITS
    )
    return {"delta.checkpointInterval": str(interval)}


def _add_missing_columns(table: DeltaTable, schema: pa.Schema) -> DeltaTable:
    """Add the columns that an existing table lacks; its rows get nulls."""
    existing = {field.name for field in table.schema().fields}
    missing = [field for field in Schema.from_arrow(schema).fields if field.name not in existing]
    if missing:
        table.alter.add_columns(missing)
    return table
