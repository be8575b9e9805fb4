"""What is audited: a stream, the batches that it has committed, and where its records and results are."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.archive.names import ledger_path, records_path
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.journal import kept_outcomes
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.tables import LEDGER
from penstock.pipelines.errors import JournalError
from penstock.pipelines.host.control import BatchRecord
from penstock.pipelines.plan import Plan, Stage
from penstock.pipelines.plan.codec import fingerprint
from penstock.pipelines.spark.avro import Schemas, no_registry
from penstock.pipelines.store import Place
from penstock.pipelines.tables.places import late_of, ledger_of, own_tables, quarantines, results
from penstock.pipelines.upgrade.changes import Change, changes
from penstock.quality.audit.tables import Due, needed, opened_table, rows
from penstock.quality.errors import DamagedTableError, NothingYetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Broker:
    """Where topics are, and what clients of either kind want of it."""

    bootstrap: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Scope:
    """A stream as it was after the newest of `batches`: what came later is no part of the audit.

    The batches are read before anything else, for a host tells of a batch when all of its tables have it.
    """

    plan: Plan
    batches: Sequence[BatchRecord]
    warehouse: Place
    journal: Path
    producers: Mapping[str, Path]
    """The ledger of each producer, by its name."""
    broker: Broker
    decisions: Path
    """The folder of what was decided of quarantined records."""
    scratch: Path
    """A folder for what is computed again; emptied before and after."""
    clock: Callable[[], int]
    session: Callable[[], "SparkSession"] = field(repr=False)
    """Opens Spark, or returns what was opened."""
    archives: Collection[str] = ()
    """The topics whose archives have committed batches."""
    compacted: Collection[str] = ()
    """The topics in which a record gives way to the next one of its key."""
    archive_journals: Mapping[str, Path] = field(default_factory=dict)
    """Where the archive of each topic keeps its journal."""
    schemas: Schemas = field(default=no_registry, repr=False)
    """Where the schemas of records in Avro are found."""
    tell: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        if not self.batches:
            raise NothingYetError(
                f"{self.plan.name} has committed no batch, so there is nothing to audit: "
                f"`penstock stream start {self.plan.name}` starts it, `penstock status` shows how far it is"
            )

    @property
    def upto(self) -> int:
        """The last batch that is audited."""
        return self.batches[-1].batch_id

    @property
    def watermark(self) -> int | None:
        """The watermark after that batch."""
        return self.batches[-1].watermark_ms

    @property
    def topics(self) -> list[str]:
        """The topics that the stream reads."""
        return [topic_of(source) for source in self.plan.sources]

    @cached_property
    def ledger(self) -> pa.Table:
        """The ledger of the stream."""
        return self.ledger_by(self.plan.first)

    @property
    def ledger_name(self) -> str:
        """Where the ledger is, below the warehouse."""
        return ledger_of(self.plan, self.plan.first)

    def ledger_by(self, stage: Stage) -> pa.Table:
        """The account of what a first stage did with what was read."""
        place = self.warehouse / ledger_of(self.plan, stage)
        found = needed(place, self.upto, LEDGER.names)
        empty = [name for name in LEDGER.names if found.column(name).null_count]
        if empty:
            raise DamagedTableError(
                place, f"has a row without {', '.join(empty)}: a batch writes every number"
            )
        return found

    @property
    def sinks(self) -> list[str]:
        """Where the tables of results are, below the warehouse."""
        return results(self.plan)

    @property
    def tables(self) -> list[str]:
        """Every table that the stream writes or that its records are kept in, below the warehouse."""
        archives = [path for topic in self.topics for path in (records_path(topic), ledger_path(topic))]
        return [*own_tables(self.plan), *quarantines(self.plan), *archives]

    @property
    def made(self) -> set[str]:
        """The tables that must be there: a stream makes its own when it starts, before any batch.

        Of a stream that is defined otherwise since its last batch, only those are known that its journal names.
        """
        archives = {path for topic in self.archives for path in (records_path(topic), ledger_path(topic))}
        told = list(self.outcomes())
        if told and told[-1].plan not in ("", fingerprint(self.plan)):
            return archives | {table for outcome in told for table in outcome.changes} & set(self.tables)
        return archives | {*own_tables(self.plan), *quarantines(self.plan)}

    def due(self, table: str) -> Due:
        """What a table of the stream must have; of one that others write as well, what is its own."""
        if table not in {*own_tables(self.plan), *quarantines(self.plan)}:
            return Due()
        told = (outcome.batch_id for outcome in self._outcomes_or_none if table in outcome.changes)
        return Due(COLUMNS.get(table.partition("/")[0], ()), self.plan.name, max(told, default=-1))

    @cached_property
    def _outcomes_or_none(self) -> list[Outcome]:
        """The outcomes; none where the journal is damaged, which is a finding of its own."""
        try:
            return list(self.outcomes())
        except JournalError:
            return []

    @cached_property
    def late(self) -> pa.Table:
        """Records that came too late for a window; without a row where none did."""
        return self.late_by(self.plan.first)

    def late_by(self, stage: Stage) -> pa.Table:
        """Records that came too late for a window of a first stage."""
        found = rows(self.warehouse / late_of(self.plan, stage), self.upto)
        return ADDRESSES.empty_table() if found is None else found

    @cached_property
    def quarantined(self) -> pa.Table:
        """Records of all its topics that the stream found to be no good."""
        found = [
            rows(self.warehouse / f"quarantine/{source.name}", self.upto, stream=self.plan.name)
            for source in self.plan.sources
        ]
        there = [table for table in found if table is not None]
        return pa.concat_tables(there) if there else ADDRESSES.empty_table()

    def is_archived(self, topic: str) -> bool:
        """Whether records of a topic are kept in an archive."""
        return opened_table(self.warehouse / records_path(topic)) is not None

    def outcomes(self) -> Iterator[Outcome]:
        """The outcomes that the stream's journal still has, from old to young. JournalError for a damaged one."""
        return (told for told in kept_outcomes(self.journal) if told.batch_id <= self.upto)

    @cached_property
    def changes(self) -> Sequence[Change]:
        """The changes of its definition before the last batch that is audited. JournalError for a damaged file."""
        return [each for each in changes(self.journal) if each.after < self.upto]

    @property
    def changed_after(self) -> int:
        """The last batch that was made by another definition than the present one; -1 where none was."""
        return max((each.after for each in self.changes), default=-1)

    def begins_after(self, table: str) -> int:
        """The batch after which a table of results was written first; -1 where that was the stream's begin."""
        return max((each.after for each in self.changes if table in each.tables), default=-1)


ADDRESSES = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("batch_id", pa.int64()),
        pa.field("event_time", pa.timestamp("us", tz="UTC")),
        pa.field("window_start", pa.timestamp("us", tz="UTC")),
        pa.field("reason", pa.string()),
    ]
)
"""What is told of records that are late or no good; an empty table made here would load pandas at each import."""

AT = ("topic", "partition", "offset", "batch_id")
WINDOW = ("window_start", "window_end")
COLUMNS: Mapping[str, Collection[str]] = {
    "ledger": (*LEDGER.names, "batch_id"),
    "late": (*AT, "event_time", *WINDOW),
    "quarantine": (*AT, "reason", "stream"),
    "panes": ("batch_id", "timing", "kind", *WINDOW),
    "final": ("batch_id", *WINDOW),
    "latest": WINDOW,
    "complete": WINDOW,
}
"""The columns that the audit goes by, in the tables of each folder."""
