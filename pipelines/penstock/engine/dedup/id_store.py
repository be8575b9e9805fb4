"""The ids that a stream remembers, in files that an outcome names: part of what a batch decides, as windows are."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.engine.dedup.duplicates import DuplicateSplit, compute_id_changes, split_duplicates
from penstock.engine.plan.stages import Plan
from penstock.engine.state import state_tree as trees
from penstock.engine.state.file_names import new_run_name

NO_EXTRA_COLUMNS = pa.schema([])
"""An id has no columns beside those that every state has."""


class RecordIdStore:
    """The ids of one stream. A batch is sifted, then remembered, then adopted once its outcome is decided."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._tree = trees.create_empty_tree(NO_EXTRA_COLUMNS)

    @property
    def row_count(self) -> int:
        """How many ids are remembered, those included that were forgotten and still stand in a file."""
        return self._tree.row_count

    def split_duplicates(self, ids: pa.Table) -> DuplicateSplit:
        """Tell repeats from first records. Nothing is remembered by it."""
        return split_duplicates(self._tree, ids)

    def write_changes(
        self, split: DuplicateSplit, previous_watermark: int, watermark: int, batch_id: int
    ) -> trees.StateTree:
        """The ids as they are after a batch, in files that nothing names yet."""
        changed_rows = compute_id_changes(self._tree, split, previous_watermark, watermark)
        path = self._directory / new_run_name(batch_id)
        return self._tree.with_run(changed_rows, path).compact(self._directory)

    def adopt(self, files: Sequence[str], tree: trees.StateTree | None) -> None:
        """Go on from what a batch decided: from its tree, or from the files that its outcome names."""
        self._tree = trees.open_tree(NO_EXTRA_COLUMNS, self._directory, files) if tree is None else tree

    def list_files(self) -> Iterator[Path]:
        """Every file that there is, named by an outcome or not."""
        return self._directory.glob("run-*")


def open_id_store(plan: Plan, directory: Path) -> RecordIdStore | None:
    """Where the ids of a plan's records are remembered, if repeats of any input are set aside."""
    return RecordIdStore(directory) if any(source.deduplication for source in plan.sources) else None
