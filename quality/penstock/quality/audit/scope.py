"""The subject of an audit: a stream, its committed batches, its records and its results."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.core.kafka_client import BrokerAccess
from penstock.core.progress import ProgressReporter
from penstock.engine.archive.archive_names import ledger_path, records_path
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.engine.errors import JournalError
from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.columns import WINDOW_BOUND_COLUMNS
from penstock.engine.plan.sinks import PaneContent
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.spark.parse.writer_schemas import SchemaLookup, refuse_without_registry
from penstock.engine.storage import StoragePath
from penstock.engine.tables.table_paths import (
    late_records_path,
    list_owned_paths,
    list_quarantine_paths,
    stage_ledger_path,
)
from penstock.engine.upgrade.definition_changes import DefinitionChange, read_definition_changes
from penstock.quality.audit.table_integrity import TableRequirements
from penstock.quality.errors import DamagedTableError, NoBatchesYetError
from penstock.quality.table_reads import read_required_rows, read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class AuditScope:
    """A stream as of the newest of `batches`. Later data is not audited.

    Batches are read first, because a host reports a batch only when all tables have it. The stream may run
    meanwhile: its later batches change nothing that is audited. What does is found by `describe_rewrite`.
    """

    plan: Plan
    batches: Sequence[BatchRecord]
    warehouse: StoragePath
    journal: Path
    producer_ledgers: Mapping[str, Path]
    """The delivery ledger of each producer."""
    broker: BrokerAccess
    decisions_folder: Path
    """The folder of quarantine decisions."""
    scratch_folder: Path
    """A folder for recomputed tables, emptied before and after."""
    clock: Callable[[], int]
    open_session: Callable[[], "SparkSession"] = field(repr=False)
    """Starts Spark, or returns the running session."""
    archived_topics: Collection[str] = ()
    """The topics whose archives have committed batches."""
    compacted_topics: Collection[str] = ()
    """The compacted topics."""
    archive_journals: Mapping[str, Path] = field(default_factory=dict)
    """The journal folder of the archive of each topic."""
    schemas: SchemaLookup = field(default=refuse_without_registry, repr=False)
    """The registry of Avro schemas."""
    report_progress: ProgressReporter = lambda _: None
    describe_rewrite: Callable[[int], str] = lambda _: ""
    """Says what changed the results of batches up to this one after it was committed; empty for nothing."""

    def __post_init__(self) -> None:
        if not self.batches:
            raise NoBatchesYetError(
                f"{self.plan.name} has committed no batch, so there is nothing to audit. "
                f"Run `penstock stream start {self.plan.name}`; `penstock status` shows its progress"
            )

    @property
    def upto(self) -> int:
        """The last audited batch."""
        return self.batches[-1].batch_id

    @property
    def watermark(self) -> int | None:
        """The watermark after the last audited batch."""
        return self.batches[-1].watermark_ms

    @property
    def topics(self) -> list[str]:
        """The topics that the stream reads."""
        return [topic_of(source) for source in self.plan.sources]

    @cached_property
    def ledger(self) -> pa.Table:
        """The stream ledger of the first source stage."""
        return self.stage_ledger(self.plan.first_source_stage)

    @property
    def ledger_table(self) -> str:
        """The path of the ledger in the warehouse."""
        return stage_ledger_path(self.plan, self.plan.first_source_stage)

    def stage_ledger(self, stage: Stage) -> pa.Table:
        """Return the ledger of a source stage."""
        path = self.warehouse / stage_ledger_path(self.plan, stage)
        ledger_rows = read_required_rows(path, self.upto, LEDGER_SCHEMA.names)
        null_columns = [name for name in LEDGER_SCHEMA.names if ledger_rows.column(name).null_count]
        if null_columns:
            raise DamagedTableError(path, f"has a row without {', '.join(null_columns)}")
        return ledger_rows

    @property
    def tables(self) -> list[str]:
        """The paths of all tables of the stream and of its archives in the warehouse."""
        archives = [path for topic in self.topics for path in (records_path(topic), ledger_path(topic))]
        return [*list_owned_paths(self.plan), *list_quarantine_paths(self.plan), *archives]

    @property
    def required_tables(self) -> set[str]:
        """The tables that must exist. A stream creates its tables when it starts, before any batch.

        After a change of the definition, only tables that the journal names are required.
        """
        archive_tables = {
            path for topic in self.archived_topics for path in (records_path(topic), ledger_path(topic))
        }
        outcomes = list(self.outcomes())
        if outcomes and outcomes[-1].plan not in ("", fingerprint(self.plan)):
            return archive_tables | {table for outcome in outcomes for table in outcome.changes} & set(
                self.tables
            )
        return archive_tables | {*list_owned_paths(self.plan), *list_quarantine_paths(self.plan)}

    def table_requirements(self, table: str) -> TableRequirements:
        """Return the columns and the newest batch that a table must have."""
        if table not in {*list_owned_paths(self.plan), *list_quarantine_paths(self.plan)}:
            return TableRequirements()
        writing_batches = (
            outcome.batch_id for outcome in self._readable_outcomes if table in outcome.changes
        )
        return TableRequirements(
            self._list_required_columns(table),
            self.plan.name,
            max(writing_batches, default=-1),
        )

    def _list_required_columns(self, table: str) -> Collection[str]:
        """Return the columns of a table that the audit reads."""
        sinks_by_path = {sink.path: sink for stage in self.plan.stages for sink in stage.sinks}
        if table in sinks_by_path:
            return RESULT_COLUMNS[sinks_by_path[table].content]
        return REQUIRED_COLUMNS.get(table.partition("/")[0], ())

    @cached_property
    def _readable_outcomes(self) -> list[BatchOutcome]:
        """Return the outcomes of the journal; none if it is damaged, which another check reports."""
        try:
            return list(self.outcomes())
        except JournalError:
            return []

    @cached_property
    def late_rows(self) -> pa.Table:
        """The late records of the first source stage."""
        return self.stage_late_rows(self.plan.first_source_stage)

    def stage_late_rows(self, stage: Stage) -> pa.Table:
        """Return the late records of a source stage."""
        late_rows = read_rows(self.warehouse / late_records_path(self.plan, stage), self.upto)
        return ADDRESS_SCHEMA.empty_table() if late_rows is None else late_rows

    @cached_property
    def quarantined_rows(self) -> pa.Table:
        """The quarantined records of all topics of the stream."""
        tables_or_none = [
            read_rows(self.warehouse / f"quarantine/{source.name}", self.upto, stream=self.plan.name)
            for source in self.plan.sources
        ]
        existing_tables = [table for table in tables_or_none if table is not None]
        return pa.concat_tables(existing_tables) if existing_tables else ADDRESS_SCHEMA.empty_table()

    def outcomes(self) -> Iterator[BatchOutcome]:
        """Return the outcomes in the journal, oldest first. Raises JournalError if it is damaged."""
        return (outcome for outcome in read_retained_outcomes(self.journal) if outcome.batch_id <= self.upto)

    @cached_property
    def definition_changes(self) -> Sequence[DefinitionChange]:
        """The definition changes up to the last audited batch. Raises JournalError on a damaged file."""
        return [change for change in read_definition_changes(self.journal) if change.after < self.upto]

    @property
    def changed_after(self) -> int:
        """The last batch of an earlier definition; -1 if there is none."""
        return max((change.after for change in self.definition_changes), default=-1)

    def table_starts_after(self, table: str) -> int:
        """The batch after which a result table was first written; -1 for the start of the stream."""
        return max((change.after for change in self.definition_changes if table in change.tables), default=-1)


ADDRESS_SCHEMA = pa.schema(
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
"""The columns of late and quarantined records. Tables are not created here, because that would import pandas."""

ROW_ADDRESS_COLUMNS = ("topic", "partition", "offset", "batch_id")
REQUIRED_COLUMNS: Mapping[str, Collection[str]] = {
    "ledger": (*LEDGER_SCHEMA.names, "batch_id"),
    "late": (*ROW_ADDRESS_COLUMNS, "event_time", *WINDOW_BOUND_COLUMNS),
    "quarantine": (*ROW_ADDRESS_COLUMNS, "reason", "stream"),
}
"""The columns that the audit reads, by table folder."""
RESULT_COLUMNS: Mapping[PaneContent, Collection[str]] = {
    PaneContent.ALL: ("batch_id", "timing", "kind", *WINDOW_BOUND_COLUMNS),
    PaneContent.FINAL: ("batch_id", *WINDOW_BOUND_COLUMNS),
    PaneContent.LATEST: WINDOW_BOUND_COLUMNS,
}
"""The columns that the audit reads of a result table."""
