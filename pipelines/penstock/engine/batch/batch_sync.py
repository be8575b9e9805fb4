"""Syncs what an outcome names, before the outcome is written.

So a power cut never leaves an outcome without its files.

The order on disk, where each step is synced before the next one starts:

1. The intent, the positions of the input, the changed state, the rows of the tables, and the commits of the batch
   before, together in one group.
2. The outcome.
3. The commits of the tables. A power cut may take them back; the next start repeats those of the last outcome.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from penstock.core.file_sync import sync_files
from penstock.engine.batch.batch_rows import BatchSink
from penstock.engine.batch.committed_state import find_state_folder
from penstock.engine.batch.intent import BatchIntent
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.storage import StoragePath
from penstock.engine.tables.table_change import TableChange

InputFileLister = Callable[[BatchIntent], Sequence[Path]]
"""Returns the files without which the input of a batch cannot be continued."""


def sync_named_files(outcome: BatchOutcome, directory: Path, warehouse: StoragePath) -> None:
    """Sync all files that an outcome names, for a writer other than the engine of batches."""
    state_files = (
        directory / find_state_folder(key) / name
        for key, names in outcome.state_files.items()
        for name in names
    )
    data_files = (
        warehouse / path / file.path for path, change in outcome.changes.items() for file in change.adds
    )
    sync_files(file for file in (*state_files, *data_files) if isinstance(file, Path))


class BatchSync:
    """The syncs of one stream; without `enabled` they do nothing."""

    def __init__(
        self,
        journal: BatchJournal,
        tables: BatchSink,
        directory: Path,
        list_input_files: InputFileLister,
        *,
        enabled: bool,
    ) -> None:
        self._journal = journal
        self._tables = tables
        self._directory = directory
        self._list_input_files = list_input_files
        self._enabled = enabled

    def sync_before_outcome(
        self,
        intent: BatchIntent,
        changes: Mapping[str, TableChange],
        state_files: Mapping[str, Sequence[str]],
        previous_files: Mapping[str, Sequence[str]],
    ) -> None:
        """Sync everything that the outcome of this batch names, unless the previous one named it."""
        if self._enabled:
            sync_files(
                [
                    *self._journal.list_entries(intent.batch_id),
                    *self._list_input_files(intent),
                    *self._tables.list_unsynced_files(changes),
                    *(
                        self._directory / find_state_folder(key) / name
                        for key, names in state_files.items()
                        for name in names
                        if name not in previous_files.get(key, ())
                    ),
                ]
            )

    def sync_before_resume(self, outcome: BatchOutcome) -> None:
        """Sync what the last outcome names: a host that did not sync, or was killed in between, wrote it."""
        if self._enabled:
            sync_files(
                [
                    *self._tables.list_unsynced_files(outcome.changes),
                    *(
                        self._directory / find_state_folder(key) / name
                        for key, names in outcome.state_files.items()
                        for name in names
                    ),
                ]
            )
            self._journal.sync()
