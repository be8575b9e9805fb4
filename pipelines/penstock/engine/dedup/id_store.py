"""The stored record ids of a stream.

A batch's outcome names their files, as it names those of window state.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.engine.dedup.duplicates import DuplicateSplit, compute_id_changes, split_duplicates
from penstock.engine.plan.stages import Plan
from penstock.engine.state.file_names import new_run_name
from penstock.engine.state.state_tree import StateTree, create_empty_tree, open_tree

NO_EXTRA_COLUMNS = pa.schema([])
"""An id has no columns beside the state header."""


class RecordIdStore:
    """The record ids of one stream.

    For each batch, call `split_duplicates`, then `write_changes`, and `adopt` the new tree once the outcome
    is committed to the journal.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._tree = create_empty_tree(NO_EXTRA_COLUMNS)

    @property
    def row_count(self) -> int:
        """The number of stored rows, expired ids that are still in a file included."""
        return self._tree.row_count

    def split_duplicates(self, ids: pa.Table) -> DuplicateSplit:
        """Split records into first records and duplicates. Stores nothing."""
        return split_duplicates(self._tree, ids)

    def write_changes(
        self, split: DuplicateSplit, previous_watermark: int, watermark: int, batch_id: int
    ) -> StateTree:
        """Write the ids as they are after a batch. No outcome names the files yet."""
        changed_rows = compute_id_changes(self._tree, split, previous_watermark, watermark)
        path = self._directory / new_run_name(batch_id)
        return self._tree.with_run(changed_rows, path).compact(self._directory)

    def adopt(self, files: Sequence[str], tree: StateTree | None) -> None:
        """Continue from a committed batch: from its tree, or from the files that its outcome names."""
        self._tree = open_tree(NO_EXTRA_COLUMNS, self._directory, files) if tree is None else tree

    def list_files(self) -> Iterator[Path]:
        """Yield every id file, partial ones and those that no outcome names included."""
        return self._directory.glob("*run-*")


def open_id_store(plan: Plan, directory: Path) -> RecordIdStore | None:
    """Return the store of a plan's record ids, or None if no input is deduplicated."""
    return RecordIdStore(directory) if any(source.deduplication for source in plan.sources) else None
