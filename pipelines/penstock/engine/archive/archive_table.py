"""The records table of an archive: a file for each batch, in a folder for each day of archiving."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction

from penstock.engine.archive.archive_rows import ARCHIVE_RECORD_SCHEMA
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import create_delta_table, make_parent_folder, write_parquet
from penstock.engine.tables.batch_table import BatchTable, checkpoint_configuration
from penstock.engine.tables.log_entries import build_commit_properties
from penstock.engine.tables.table_change import DataFile, TableChange
from penstock.engine.tables.table_documentation import document_table

DAY_COLUMN = "day"
_BOUNDED_COLUMNS = ("partition", "offset", "timestamp")
_MIN_FILES_TO_MERGE = 8


class ArchiveTable(BatchTable):
    """Commits each batch once. The day is that of the batch's clock, because producers' times have no bounds."""

    def __init__(self, path: StoragePath, application: str) -> None:
        schema = pa.schema([*ARCHIVE_RECORD_SCHEMA, pa.field(DAY_COLUMN, pa.date32())])
        documentation = document_table("raw")
        create_delta_table(
            path,
            documentation.annotate(schema),
            partition_by=DAY_COLUMN,
            description=documentation.description,
            configuration=checkpoint_configuration(path),
        )
        super().__init__(path, schema, application, documentation)

    def write(self, rows: pa.Table, batch_id: int, epoch: int, clock: int) -> TableChange:
        """Write a batch's records to a file that the table does not reference yet.

        Its name has the epoch: a fenced host may still write here, to files that nothing references.
        """
        if not rows.num_rows:
            return TableChange()
        folder = self.path / f"{DAY_COLUMN}={utc_day(clock)}"
        path = folder / f"batch-{batch_id:012d}-{epoch}.parquet"
        make_parent_folder(path)
        size = write_parquet(rows, path, store_schema=False)
        return TableChange(
            [DataFile(f"{folder.name}/{path.name}", size, rows.num_rows, _file_statistics(rows), clock)]
        )

    def merge_day(self, day: str) -> int:
        """Compact the files of a past day; return how many there were, 0 if there are too few.

        The old files stay for a week, for readers that still use them.
        """
        self._table.update_incremental()
        file_count = len(self._table.file_uris(file_pruning_predicate=[(DAY_COLUMN, "=", day)]))
        if file_count < _MIN_FILES_TO_MERGE:
            return 0
        self._table.optimize.compact([(DAY_COLUMN, "=", day)])
        self._table.vacuum(dry_run=False)
        return file_count

    def _commit(self, batch_id: int, change: TableChange, clock: int) -> None:
        adds = [
            AddAction(f.path, f.size, {DAY_COLUMN: _day_of_path(f.path)}, f.written_at_ms, True, f.statistics)
            for f in change.adds
        ]
        self._table.create_write_transaction(
            [*adds],
            mode="append",
            schema=self.schema,
            partition_by=DAY_COLUMN,
            commit_properties=build_commit_properties(adds, (), [Transaction(self.application, batch_id)]),
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )


def utc_day(clock: int) -> str:
    """Return the day of a clock, UTC."""
    return datetime.fromtimestamp(clock / 1_000, UTC).date().isoformat()


def _day_of_path(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removeprefix(f"{DAY_COLUMN}=")


def _file_statistics(rows: pa.Table) -> str:
    """Return the statistics by which readers skip files: the bounds of address and time."""
    bounds = {name: pc.min_max(rows.column(name)).as_py() for name in _BOUNDED_COLUMNS}
    minimums, maximums = (
        {name: _to_json_value(bounds[name][bound]) for name in _BOUNDED_COLUMNS} for bound in ("min", "max")
    )
    return json.dumps({"numRecords": rows.num_rows, "minValues": minimums, "maxValues": maximums})


def _to_json_value(value: object) -> object:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else value
