"""A topic as an audit finds it: what it holds now, what its archive holds, and where a record is to be had."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException

from penstock.engine.archive.archive_names import ledger_path, records_path
from penstock.engine.archive.topic_reader import GAP_EXPIRED
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.errors import BoundedInputError
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.archive_source import ArchiveSource
from penstock.engine.spark.bounded_sources.range_slicing import filter_ranges
from penstock.engine.spark.bounded_sources.topic_source import TopicSource, list_topic_ranges
from penstock.quality.audit.block_digests import OFFSETS_PER_BLOCK, OffsetBlock
from penstock.quality.audit.delivery_claims import DeliveryClaims, read_topic_claims
from penstock.quality.audit.ledger_continuity import TopicPartition
from penstock.quality.audit.offset_runs import OffsetRun, OffsetRuns, has_compacted_records
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.spark_digests import compute_digests, fetch_block, find_offset_runs
from penstock.quality.audit.table_reads import describe_missing_columns, open_table, read_table
from penstock.quality.errors import DamagedTableError

ARCHIVE_LEDGER_COLUMNS = ("partition", "start", "end", "batch_id", "gaps")
"""What is read of an archive's ledger."""

OffsetBounds = tuple[int, int]
"""The offsets [first, end) of a partition."""


@dataclass
class TopicView:
    """One topic of a stream. Its bounds are taken at first; whatever comes later is no part of the audit."""

    scope: AuditScope
    topic: str
    broker_error: str = ""
    """Why the broker could not be asked."""
    topic_bounds: Mapping[int, OffsetBounds] = field(default_factory=dict)
    """What the topic holds of each partition."""
    archive_bounds: Mapping[int, OffsetBounds] = field(default_factory=dict)
    """What the archive has looked at of each partition; nothing without an archive."""

    claims: Mapping[str, DeliveryClaims] = field(default_factory=dict)
    """What each producer knows to be acknowledged."""
    producer_error: str = ""
    """Why producers could not be asked."""
    archive_damage: DamagedTableError | None = None
    """Why the archive does not count, where it has one."""

    def __post_init__(self) -> None:
        # Read before the topic's bounds are: what a feed at work has delivered since lies beyond them.
        try:
            self.claims = {
                producer: read_topic_claims(self.topic, folder)
                for producer, folder in self.scope.producer_ledgers.items()
            }
        except Exception as problem:  # noqa: BLE001  # a ledger that no producer writes may break anything
            self.producer_error = str(problem) or type(problem).__name__
        try:
            broker = self.scope.broker
            topic_ranges = list_topic_ranges(self.topic, broker.bootstrap, broker.client_config)
            self.topic_bounds = {
                topic_range.partition: (topic_range.start, topic_range.end) for topic_range in topic_ranges
            }
        except (KafkaException, BoundedInputError) as problem:
            self.broker_error = str(problem.args[0])
        try:
            self.archive_bounds = read_archive_bounds(self.scope, self.topic)
        except DamagedTableError as damage:
            self.archive_damage = damage

    @cached_property
    def expired_runs(self) -> Mapping[int, Sequence[OffsetRun]]:
        """The offsets of each partition that had expired before they were archived, as the archive says."""
        runs_by_partition: dict[int, list[OffsetRun]] = {}
        for row in read_archive_ledger(self.scope, self.topic):
            runs = runs_by_partition.setdefault(row["partition"], [])
            runs += [(gap["first"], gap["last"] - gap["first"] + 1) for gap in _expired_gaps(row)]
        return runs_by_partition

    @cached_property
    def topic_source(self) -> TopicSource:
        """The records that the broker has, with their headers."""
        broker = self.scope.broker
        kafka = {**broker.spark_options, "includeHeaders": "true"}
        return TopicSource(
            self.scope.open_session(), self.topic, broker.bootstrap, broker.client_config, kafka
        )

    @cached_property
    def archive_source(self) -> ArchiveSource:
        """The records that the archive has."""
        path = str(self.scope.warehouse / records_path(self.topic))
        return ArchiveSource(self.scope.open_session().read.format("delta").load(path), self.topic)

    @property
    def is_compacted(self) -> bool:
        """Whether records of the topic give way to the next ones of their keys."""
        return self.topic in self.scope.compacted_topics

    @cached_property
    def topic_digests(self) -> pa.Table:
        """Digests of what the topic holds."""
        return compute_digests(self.topic_source.read_records(self.to_ranges(self.topic_bounds)))

    @cached_property
    def archive_digests(self) -> pa.Table:
        """Digests of what the archive holds."""
        return compute_digests(self.archive_source.archive_rows)

    @cached_property
    def shared_digests(self) -> pa.Table:
        """Digests of what the archive holds of that which the topic may have: if it is compacted, what it has."""
        if not self.is_compacted:
            return self.archive_digests
        topic_offsets = self.topic_source.read_records(self.to_ranges(self.topic_bounds)).select(
            "partition", "offset"
        )
        return compute_digests(
            self.archive_source.archive_rows.join(topic_offsets, ["partition", "offset"], "left_semi")
        )

    def has_lost_records(self, ledger: pa.Table, source: BoundedSource) -> bool:
        """Tell whether some of what batches read has given way to other records, and is in `source` no more."""
        return self.is_compacted and has_compacted_records(ledger, self.offset_runs(source))

    def offset_runs(self, source: BoundedSource) -> dict[TopicPartition, OffsetRuns]:
        """Return which offsets hold a record, in the topic or in the archive."""
        is_topic = source is self.topic_source
        records = source.read_records(self.to_ranges(self.topic_bounds if is_topic else self.archive_bounds))
        return find_offset_runs(self.topic, records, self.topic_digests if is_topic else self.archive_digests)

    def to_ranges(self, bounds: Mapping[int, OffsetBounds]) -> tuple[OffsetRange, ...]:
        """Return bounds as ranges."""
        return tuple(
            OffsetRange(self.topic, partition, *offset_bounds)
            for partition, offset_bounds in sorted(bounds.items())
        )

    def find_source(self, ranges: Sequence[OffsetRange]) -> BoundedSource | None:
        """Where the records of these ranges are still to be had: the archive, else the topic, else nowhere."""
        wanted_ranges = [offset_range for offset_range in ranges if offset_range.end > offset_range.start]
        if all(_is_covered(self.archive_bounds, offset_range) for offset_range in wanted_ranges):
            return self.archive_source
        return (
            self.topic_source
            if all(_is_covered(self.topic_bounds, offset_range) for offset_range in wanted_ranges)
            else None
        )

    def shared_bounds(self) -> Mapping[int, OffsetBounds]:
        """Return the offsets that topic and archive both have."""
        shared = {}
        for partition, (first, end) in self.archive_bounds.items():
            low, high = self.topic_bounds.get(partition, (0, 0))
            shared[partition] = (max(first, low), max(first, low, min(end, high)))
        return shared

    def fetch_shared_block(self, source: BoundedSource, block: OffsetBlock) -> list[dict[str, Any]]:
        """Return what one of the two has of a stretch that both may have."""
        first, end = self.shared_bounds()[block.partition]
        block_start = block.number * OFFSETS_PER_BLOCK
        wanted_bounds = (
            max(first, block_start),
            max(first, block_start, min(end, block_start + OFFSETS_PER_BLOCK)),
        )
        empty_bounds = {number: (bounds[0], bounds[0]) for number, bounds in self.topic_bounds.items()}
        wanted_ranges = self.to_ranges({**empty_bounds, block.partition: wanted_bounds})
        block_records = (
            filter_ranges(self.archive_source.archive_rows, wanted_ranges)
            if source is self.archive_source
            else source.read_records(wanted_ranges)
        )
        return fetch_block(block_records, block)


def read_archive_bounds(scope: AuditScope, topic: str) -> Mapping[int, OffsetBounds]:
    """Return the offsets that the archive of a topic has the records of, or says why there are none.

    What had expired before it was archived is outside. DamagedTableError where one of its two tables is no good.
    """
    bounds_by_partition: dict[int, OffsetBounds] = {}
    try:
        for row in read_archive_ledger(scope, topic):
            expired_ends = [gap["last"] + 1 for gap in _expired_gaps(row)]
            first, _ = bounds_by_partition.get(row["partition"], (row["start"], 0))
            bounds_by_partition[row["partition"]] = (max([first, *expired_ends]), row["end"])
    except (TypeError, KeyError, pa.ArrowException) as problem:
        cause = f"{type(problem).__name__}: {problem}"
        raise DamagedTableError(
            scope.warehouse / ledger_path(topic), f"has rows that no archive writes ({cause})"
        ) from problem
    return bounds_by_partition


def read_archive_ledger(scope: AuditScope, topic: str) -> list[dict[str, Any]]:
    """Return the rows of an archive's ledger, by their begins; none without an archive.

    DamagedTableError where one of its two tables is no good.
    """
    ledger_table_path, records_table_path = (
        scope.warehouse / ledger_path(topic),
        scope.warehouse / records_path(topic),
    )
    table, records_table = open_table(ledger_table_path), open_table(records_table_path)
    if table is None and records_table is None:
        return []
    if table is None or records_table is None:
        raise DamagedTableError(
            records_table_path if records_table is None else ledger_table_path,
            "is not there, and the rest of the archive is",
        )
    if missing_columns := describe_missing_columns(table, ARCHIVE_LEDGER_COLUMNS):
        raise DamagedTableError(ledger_table_path, missing_columns)
    ledger_rows = read_table(table, ledger_table_path, ARCHIVE_LEDGER_COLUMNS)
    if null_columns := [name for name in ARCHIVE_LEDGER_COLUMNS[:-1] if ledger_rows.column(name).null_count]:
        raise DamagedTableError(
            ledger_table_path, f"has a row without {', '.join(null_columns)}: a batch writes every number"
        )
    rows: list[dict[str, Any]] = ledger_rows.sort_by("start").to_pylist()
    return rows


def explain_archive_lag(scope: AuditScope, topic: str) -> str | None:
    """Say that an archive's ledger ends before what its journal has decided; None where it does not.

    The journal is read first. Its newest batch may not be in the table yet: an archive that is at work decides a
    batch before it brings it in, and one that was killed in between brings it in when it starts.
    """
    journal = scope.archive_journals.get(topic)
    journaled_batches = (
        [] if journal is None else [outcome.batch_id for outcome in read_retained_outcomes(journal)]
    )
    newest_batch = max((row["batch_id"] for row in read_archive_ledger(scope, topic)), default=-1)
    if not journaled_batches or newest_batch >= max(journaled_batches) - 1:
        return None
    state_text = f"its newest batch is {newest_batch}" if newest_batch >= 0 else "it has no batch"
    newest_decided = max(journaled_batches)
    return f"{state_text}, and its journal has decided batch {newest_decided}: batches between are not in it"


def _expired_gaps(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [gap for gap in row["gaps"] or () if gap["reason"] == GAP_EXPIRED]


def _is_covered(bounds: Mapping[int, OffsetBounds], offset_range: OffsetRange) -> bool:
    first, end = bounds.get(offset_range.partition, (0, 0))
    return first <= offset_range.start and offset_range.end <= end
