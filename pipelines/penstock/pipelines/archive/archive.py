"""Bringing what was read of a topic into its archive, each offset once, whatever happens in between.

Of the batch protocol the archive needs the second half: nothing that it writes depends on a clock or on a state,
so there is no intent. A batch's rows are written into files that nothing names yet, the outcome names them, which
decides the batch, and the tables take them by (application, batch id). Killed before the outcome, the records are
read again, perhaps cut elsewhere; killed after it, the commits are repeated and change nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from penstock.pipelines.archive.names import archive_of, ledger_path, records_path
from penstock.pipelines.archive.rows import LEDGER, Taken, ledger_rows, record_rows
from penstock.pipelines.archive.table import ArchiveTable, day_of
from penstock.pipelines.batch.intent import partition_name
from penstock.pipelines.batch.journal import KEPT, Journal
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.right import Right
from penstock.pipelines.errors import ArchiveError, FencedError
from penstock.pipelines.fold.watermark import Watermark
from penstock.pipelines.host.control import PartitionAccount
from penstock.pipelines.store import Place
from penstock.pipelines.tables.change import Change
from penstock.pipelines.tables.table import BatchTable


class Archive:
    """The archive of one topic, by its one writer. Its caller sees to it that one batch is taken at a time."""

    def __init__(
        self,
        topic: str,
        topic_id: str,
        directory: Path,
        warehouse: Place,
        right: Right,
        told: Callable[[Outcome], None],
    ) -> None:
        name = archive_of(topic)
        self.topic = topic
        self._topic_id = topic_id
        self._right = right
        self._told = told
        self._journal = Journal.of_writer(directory / "journal")
        self._records = ArchiveTable(warehouse / records_path(topic), name)
        self._ledger = BatchTable(warehouse / ledger_path(topic), LEDGER, name)
        self.last: Outcome | None = None

    @property
    def ends(self) -> Mapping[int, int]:
        """The next offset of each partition that was read."""
        ends = {} if self.last is None else self.last.ends
        return {int(name.rpartition("/")[2]): end for name, end in ends.items()}

    def resume(self) -> None:
        """Take up where the journal ends. ArchiveError where topic, journal and table do not belong together."""
        decided = self._journal.last_outcome()
        held = self._records.last_batch()
        if held > (-1 if decided is None else decided.batch_id):
            raise ArchiveError(
                f"{self._records.path} holds batch {held}, and the journal {self._journal.directory} ends before "
                "it: restore the journal, or move the table away to archive the topic from its beginning"
            )
        if decided is not None:
            if decided.plan != self._topic_id:
                raise ArchiveError(
                    f"topic {self.topic} was made anew since it was archived (its id was {decided.plan}, and is "
                    f"{self._topic_id}): move {self._records.path}, {self._ledger.path} and "
                    f"{self._journal.directory} away, and the new topic is archived from its beginning"
                )
            self._publish(decided)

    def take(self, taken: Mapping[int, Taken], clock: int, lag_records: int = 0) -> None:
        """Bring records into the archive; they must begin where the last batch ended."""
        self._right.check()
        prepared = self._prepared(taken, clock, lag_records)
        decided = self._journal.decide(prepared)
        if decided is not prepared:
            # Another host decided this batch: who goes on has to begin from what that one took.
            raise FencedError(self._right.stream, self._right.epoch)
        self._publish(decided)
        if decided.batch_id % KEPT == 0:
            self._journal.forget_before(decided.batch_id - KEPT)

    def _prepared(self, taken: Mapping[int, Taken], clock: int, lag_records: int) -> Outcome:
        number = 0 if self.last is None else self.last.batch_id + 1
        changes = self._files(taken, number, clock)
        self._right.check()
        accounts = tuple(self._accounts(taken))
        return Outcome(
            batch_id=number,
            kind="data",
            clock=clock,
            epoch=self._right.epoch,
            spark_batch=None,
            watermark=Watermark(),
            ends={partition_name(self.topic, account.partition): account.end for account in accounts},
            state_files={},
            changes={path: change for path, change in changes.items() if not change.is_none},
            accounts=accounts,
            archived=sum(account.read for account in accounts),
            lag_records=lag_records,
            plan=self._topic_id,
        )

    def _files(self, taken: Mapping[int, Taken], number: int, clock: int) -> dict[str, Change]:
        epoch = self._right.epoch
        told = ledger_rows(self.topic, taken, number, clock)
        return {
            records_path(self.topic): self._records.write(record_rows(taken, number), number, epoch, clock),
            ledger_path(self.topic): Change(
                [self._ledger.write_file(told, f"batch-{number:012d}-{epoch}", clock)]
            ),
        }

    def _accounts(self, taken: Mapping[int, Taken]) -> Iterator[PartitionAccount]:
        """Say of each partition that is known how far it is; every record that was read is in the archive."""
        ends = self.ends
        for partition in sorted({*ends, *taken}):
            start = ends.get(partition, 0)
            part = taken.get(partition) or Taken(start, start)
            if part.start != start:
                raise ArchiveError(
                    f"{self.topic} partition {partition} was archived up to {start}, and what was read begins at "
                    f"{part.start}; start the archive again"
                )
            read = len(part.messages)
            yield PartitionAccount(self.topic, partition, start, part.end, read, read, 0, 0, 0)

    def _publish(self, outcome: Outcome) -> None:
        tables = {records_path(self.topic): self._records, ledger_path(self.topic): self._ledger}
        for path, change in outcome.changes.items():
            tables[path].commit(outcome.batch_id, change, outcome.clock)
        self._merge_before(outcome)
        self.last = outcome
        self._told(outcome)

    def _merge_before(self, outcome: Outcome) -> None:
        """With the first batch of a day, make few files of the day before."""
        if self.last is not None and day_of(self.last.clock) != day_of(outcome.clock):
            self._records.merge_day(day_of(self.last.clock))
