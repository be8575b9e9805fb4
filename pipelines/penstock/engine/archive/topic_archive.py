"""Commits the records of a topic to its archive, each offset once, whatever fails in between.

The archive needs the second half of the batch protocol only: nothing that it writes depends on a clock or a state,
so there is no intent. A batch's rows are written to files that nothing references yet; its outcome references them,
which commits the batch; the tables commit them by (application, batch id). After a kill before the outcome, the
records are read again, perhaps in other batches. After a later kill, the commits are repeated and change nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from penstock.core.file_sync import sync_files
from penstock.engine.archive.archive_names import archive_name, ledger_path, records_path
from penstock.engine.archive.archive_rows import (
    ARCHIVE_LEDGER_SCHEMA,
    PartitionSlice,
    build_ledger_rows,
    build_record_rows,
)
from penstock.engine.archive.archive_table import ArchiveTable, utc_day
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.intent import partition_name
from penstock.engine.batch.journal import RETAINED_BATCHES, BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.stopwatch import Stopwatch
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import ArchiveError, WriterFencedError
from penstock.engine.operators.watermark import Watermark
from penstock.engine.storage import StoragePath
from penstock.engine.tables.batch_table import BatchTable, claim_existing_tables
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.table_documentation import document_table
from penstock.engine.tables.table_owner import TableClaim


class TopicArchive:
    """The archive of one topic, with one writer. The caller commits one batch at a time."""

    def __init__(
        self,
        topic: str,
        topic_id: str,
        directory: Path,
        warehouse: StoragePath,
        fence: WriteFence,
        report_outcome: Callable[[BatchOutcome], None],
        claim: TableClaim | None = None,
    ) -> None:
        """Open the archive. With a claim, raises TableOwnedError if another writer has its tables."""
        if claim is not None:
            tables = [warehouse / records_path(topic), warehouse / ledger_path(topic)]
            claim_existing_tables(tables, claim)
        archive_stream = archive_name(topic)
        self.topic = topic
        self._topic_id = topic_id
        self._fence = fence
        self._report_outcome = report_outcome
        self._journal = BatchJournal.open_for_writing(directory / "journal")
        self._records = ArchiveTable(warehouse / records_path(topic), archive_stream)
        self._ledger = BatchTable(
            warehouse / ledger_path(topic), ARCHIVE_LEDGER_SCHEMA, archive_stream, document_table("ledger")
        )
        if claim is not None:
            self._records.claim(claim)
            self._ledger.claim(claim)
        self._tables: dict[str, BatchTable] = {
            records_path(topic): self._records,
            ledger_path(topic): self._ledger,
        }
        self.last_outcome: BatchOutcome | None = None

    @property
    def end_offsets(self) -> Mapping[int, int]:
        """The next offset of each partition that was read."""
        ends_by_partition = {} if self.last_outcome is None else self.last_outcome.ends
        return {int(name.rpartition("/")[2]): end for name, end in ends_by_partition.items()}

    def resume(self) -> None:
        """Resume from the journal. Raises ArchiveError if topic, journal and table do not match."""
        outcome = self._journal.read_last_outcome()
        committed_batch = self._records.read_last_batch()
        if committed_batch > (-1 if outcome is None else outcome.batch_id):
            raise ArchiveError(
                f"{self._records.path} has batch {committed_batch}, "
                f"but the journal {self._journal.directory} ends before it: "
                "restore the journal, or move the table away to archive the topic from its first offset"
            )
        if outcome is not None:
            if outcome.plan != self._topic_id:
                raise ArchiveError(
                    f"topic {self.topic} was deleted and created again since it was archived (its id was "
                    f"{outcome.plan}, and is {self._topic_id}): move {self._records.path}, {self._ledger.path} and "
                    f"{self._journal.directory} away to archive the new topic from its first offset"
                )
            self._commit_and_report(outcome)

    def archive_batch(self, slices: Mapping[int, PartitionSlice], clock: int, lag_records: int = 0) -> None:
        """Archive records, which must start where the last batch ended."""
        self._fence.ensure_held()
        prepared_outcome = self._prepare_outcome(slices, clock, lag_records)
        sync_files(
            file
            for path, table in self._tables.items()
            for file in table.list_unsynced_files(prepared_outcome.changes.get(path, TableChange()))
        )
        decided_outcome = self._journal.commit_outcome(prepared_outcome)
        if decided_outcome is not prepared_outcome:
            # Another host committed this batch: the next start must continue from its offsets.
            raise WriterFencedError(self._fence.stream, self._fence.epoch)
        self._commit_and_report(decided_outcome)
        if decided_outcome.batch_id % RETAINED_BATCHES == 0:
            self._journal.forget_before(decided_outcome.batch_id - RETAINED_BATCHES)

    def _prepare_outcome(
        self, slices: Mapping[int, PartitionSlice], clock: int, lag_records: int
    ) -> BatchOutcome:
        batch_id = 0 if self.last_outcome is None else self.last_outcome.batch_id + 1
        stopwatch = Stopwatch()
        with stopwatch.step("write"):
            changes = self._write_files(slices, batch_id, clock)
        self._fence.ensure_held()
        accounts = tuple(self._account_partitions(slices))
        return BatchOutcome(
            batch_id=batch_id,
            kind="data",
            clock=clock,
            epoch=self._fence.epoch,
            spark_batch=None,
            watermark=Watermark(),
            ends={partition_name(self.topic, account.partition): account.end for account in accounts},
            state_files={},
            changes={path: change for path, change in changes.items() if not change.is_empty},
            accounts=accounts,
            archived=sum(account.read for account in accounts),
            lag_records=lag_records,
            durations_ms=stopwatch.durations_ms,
            plan=self._topic_id,
            committed_at_ms=clock + round(sum(stopwatch.durations_ms.values())),
        )

    def _write_files(
        self, slices: Mapping[int, PartitionSlice], batch_id: int, clock: int
    ) -> dict[str, TableChange]:
        epoch = self._fence.epoch
        ledger_table = build_ledger_rows(self.topic, slices, batch_id, clock)
        return {
            records_path(self.topic): self._records.write(
                build_record_rows(slices, batch_id), batch_id, epoch, clock
            ),
            ledger_path(self.topic): TableChange(
                [self._ledger.write_file(ledger_table, f"batch-{batch_id:012d}-{epoch}", clock)]
            ),
        }

    def _account_partitions(self, slices: Mapping[int, PartitionSlice]) -> Iterator[PartitionAccount]:
        """Account for each known partition; every record read is in the archive."""
        end_offsets = self.end_offsets
        for partition in sorted({*end_offsets, *slices}):
            start = end_offsets.get(partition, 0)
            partition_slice = slices.get(partition) or PartitionSlice(start, start)
            if partition_slice.start != start:
                raise ArchiveError(
                    f"{self.topic} partition {partition} is archived up to {start}, but the reader starts at "
                    f"{partition_slice.start}; start the archive again"
                )
            record_count = len(partition_slice.messages)
            yield PartitionAccount(
                self.topic, partition, start, partition_slice.end, record_count, record_count, 0, 0, 0
            )

    def _commit_and_report(self, outcome: BatchOutcome) -> None:
        for path, change in outcome.changes.items():
            self._tables[path].commit(outcome.batch_id, change, outcome.clock)
        self._merge_previous_day(outcome)
        self.last_outcome = outcome
        self._report_outcome(outcome)

    def _merge_previous_day(self, outcome: BatchOutcome) -> None:
        """With the first batch of a day, compact the files of the day before."""
        if self.last_outcome is not None and utc_day(self.last_outcome.clock) != utc_day(outcome.clock):
            self._records.merge_day(utc_day(self.last_outcome.clock))
