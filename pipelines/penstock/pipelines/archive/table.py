"""The table of an archive: a file for each batch, in a folder for each day on which records were taken."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction

from penstock.pipelines.archive.rows import RECORD
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import make_folder, new_table, write_rows
from penstock.pipelines.tables.change import Change, DataFile
from penstock.pipelines.tables.table import BatchTable, checkpoints

DAY = "day"
_BOUNDED = ("partition", "offset", "timestamp")
_WORTH_MERGING = 8


class ArchiveTable(BatchTable):
    """Takes each batch once. The day is that of the batch's clock: the times that producers tell bound nothing."""

    def __init__(self, path: Place, application: str) -> None:
        schema = pa.schema([*RECORD, pa.field(DAY, pa.date32())])
        new_table(path, schema, partition_by=DAY, configuration=checkpoints(path))
        super().__init__(path, schema, application)

    def write(self, rows: pa.Table, batch_id: int, epoch: int, clock: int) -> Change:
        """Write a batch's records into a file that the table does not name yet.

        The epoch is in the name: a host that was taken over may still write here, what nobody will name.
        """
        if not rows.num_rows:
            return Change()
        folder = self.path / f"{DAY}={day_of(clock)}"
        path = folder / f"batch-{batch_id:012d}-{epoch}.parquet"
        make_folder(path)
        size = write_rows(rows, path, store_schema=False)
        return Change([DataFile(f"{folder.name}/{path.name}", size, rows.num_rows, _bounds(rows), clock)])

    def merge_day(self, day: str) -> int:
        """Make few files of the many of a day that is over; returns how many there were, 0 where they stay.

        The old files stay for a week, for whoever is reading them.
        """
        self._table.update_incremental()
        files = len(self._table.file_uris(file_pruning_predicate=[(DAY, "=", day)]))
        if files < _WORTH_MERGING:
            return 0
        self._table.optimize.compact([(DAY, "=", day)])
        self._table.vacuum(dry_run=False)
        return files

    def _commit(self, batch_id: int, change: Change, clock: int) -> None:
        self._table.create_write_transaction(
            [
                AddAction(f.path, f.size, {DAY: _day_in(f.path)}, f.written_at_ms, True, f.statistics)
                for f in change.adds
            ],
            mode="append",
            schema=self.schema,
            partition_by=DAY,
            commit_properties=CommitProperties(app_transactions=[Transaction(self.application, batch_id)]),
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )


def day_of(clock: int) -> str:
    """Return the day of a clock, UTC."""
    return datetime.fromtimestamp(clock / 1_000, UTC).date().isoformat()


def _day_in(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removeprefix(f"{DAY}=")


def _bounds(rows: pa.Table) -> str:
    """What readers skip files by: the bounds of address and time."""
    bounds = {name: pc.min_max(rows.column(name)).as_py() for name in _BOUNDED}
    least, greatest = ({name: _plain(bounds[name][end]) for name in _BOUNDED} for end in ("min", "max"))
    return json.dumps({"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest})


def _plain(value: object) -> object:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else value
