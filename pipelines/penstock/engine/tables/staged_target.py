"""The target of a sink that is not a Delta table: it stores the rows of a batch in a file until the commit."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import make_parent_folder, read_parquet, write_parquet
from penstock.engine.tables.folder_owner import claim_folder
from penstock.engine.tables.table_change import DataFile, TableChange
from penstock.engine.tables.table_owner import TableClaim


class StagedTarget(ABC):
    """A target that applies each batch once, if `apply` records the batch id together with the rows.

    The files lie in `folder`. Maintenance removes those that no journal names.
    """

    def __init__(self, folder: StoragePath, application: str) -> None:
        self.folder = folder
        self.application = application

    def claim(self, claim: TableClaim) -> None:
        """Claim the folder for its only writer. Raises TableOwnedError if it belongs to another one."""
        claim_folder(self.folder, claim)

    @abstractmethod
    def read_last_batch(self) -> int:
        """Return the newest batch that is known to be applied; -1 before the first."""

    @abstractmethod
    def apply(self, batch_id: int, rows: pa.Table) -> bool:
        """Apply the rows of a batch; return False when it was applied before.

        A process that ends in the middle must leave all of the batch or nothing, because the call is repeated.
        """

    def count_result_rows(self, rows: pa.Table) -> int:
        """Return how many of the rows count as results."""
        row_count: int = rows.num_rows
        return row_count

    def write(self, rows: pa.Table, batch_id: int, clock: int) -> TableChange:
        """Write a batch's rows into a new file, which is not read before an outcome names it."""
        if not rows.num_rows:
            return TableChange()
        path = self.folder / f"{self.application}-{batch_id:012d}-{uuid4().hex[:8]}.parquet"
        make_parent_folder(path)
        file = DataFile(path.name, write_parquet(rows, path), rows.num_rows, "", clock)
        return TableChange([file], (), self.count_result_rows(rows))

    def discard(self, files: Iterable[DataFile]) -> None:
        """Remove the files of an attempt that failed before an outcome named them."""
        for file in files:
            (self.folder / file.path).unlink(missing_ok=True)

    def list_unsynced_files(self, change: TableChange) -> list[Path]:
        """Return the new files of a change, for their sync; none in an object store."""
        return [self.folder / file.path for file in change.adds] if isinstance(self.folder, Path) else []

    def commit(self, batch_id: int, change: TableChange, clock: int) -> bool:
        """Apply a batch's rows once; return False when they were applied before."""
        del clock
        is_new = batch_id > self.read_last_batch()
        if is_new:
            files = [read_parquet(self.folder / file.path) for file in change.adds]
            is_new = self.apply(batch_id, pa.concat_tables(files))
        self.discard(change.adds)
        return is_new

    def refresh_ahead(self) -> None:  # noqa: B027  # most targets have no version to refresh
        """Do nothing. Override it to prepare the next commit."""
