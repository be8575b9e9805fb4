"""A topic during an audit: the records of the topic and of its archive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException

from penstock.core.kafka_client import create_admin_client, describe_kafka_error
from penstock.core.kafka_topics import TopicIds, fetch_cluster_topic_ids
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
from penstock.quality.audit.offset_runs import OffsetRun, OffsetRuns, has_compacted_records
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.spark_digests import compute_digests, fetch_block, find_offset_runs
from penstock.quality.errors import DamagedTableError
from penstock.quality.ledger_rows import TopicPartition
from penstock.quality.table_reads import describe_missing_columns, open_table, read_table

ARCHIVE_LEDGER_COLUMNS = ("partition", "start", "end", "batch_id", "gaps")
"""The columns that are read from an archive ledger."""

OffsetBounds = tuple[int, int]
"""The offsets [first, end) of a partition."""


@dataclass
class TopicView:
    """One topic of a stream. Bounds are read once, at the start; later records are not audited."""

    scope: AuditScope
    topic: str
    broker_error: str = ""
    """Why the broker could not be reached."""
    topic_bounds: Mapping[int, OffsetBounds] = field(default_factory=dict)
    """The offsets that the topic has, by partition."""
    archive_bounds: Mapping[int, OffsetBounds] = field(default_factory=dict)
    """The offsets that the archive covers, by partition; empty without an archive."""

    claims: Mapping[str, DeliveryClaims] = field(default_factory=dict)
    """What the ledger of each producer says of the topic."""
    producer_error: str = ""
    """Why a delivery ledger could not be read."""
    archive_damage: DamagedTableError | None = None
    """Why the archive cannot be used."""

    def __post_init__(self) -> None:
        # Read claims before bounds: records that a running producer delivers meanwhile are outside of the bounds.
        try:
            admin = create_admin_client(self.scope.broker.bootstrap, self.scope.broker.client_options)
            self._read_claims(fetch_cluster_topic_ids(admin, [self.topic]))
            topic_ranges = list_topic_ranges(self.topic, self.scope.broker)
            self.topic_bounds = {
                topic_range.partition: (topic_range.start, topic_range.end) for topic_range in topic_ranges
            }
        except KafkaException as problem:
            self.broker_error = describe_kafka_error(problem)
        except BoundedInputError as problem:
            self.broker_error = str(problem)
        try:
            self.archive_bounds = read_archive_bounds(self.scope, self.topic)
        except DamagedTableError as damage:
            self.archive_damage = damage

    def _read_claims(self, topic_ids: TopicIds) -> None:
        try:
            self.claims = {
                producer: read_topic_claims(self.topic, topic_ids, folder)
                for producer, folder in self.scope.producer_ledgers.items()
            }
        except Exception as problem:  # noqa: BLE001  # a ledger that no producer writes may break anything
            self.producer_error = str(problem) or type(problem).__name__

    @cached_property
    def expired_runs(self) -> Mapping[int, Sequence[OffsetRun]]:
        """The offsets that had expired before they were archived, according to the archive."""
        runs_by_partition: dict[int, list[OffsetRun]] = {}
        for row in read_archive_ledger(self.scope, self.topic):
            runs = runs_by_partition.setdefault(row["partition"], [])
            runs += [(gap["first"], gap["last"] - gap["first"] + 1) for gap in _expired_gaps(row)]
        return runs_by_partition

    @cached_property
    def topic_source(self) -> TopicSource:
        """The records of the topic, with headers."""
        broker = self.scope.broker
        with_headers = {**broker.spark_options, "includeHeaders": "true"}
        return TopicSource(self.scope.open_session(), self.topic, replace(broker, spark_options=with_headers))

    @cached_property
    def archive_source(self) -> ArchiveSource:
        """The records of the archive."""
        path = str(self.scope.warehouse / records_path(self.topic))
        return ArchiveSource(self.scope.open_session().read.format("delta").load(path), self.topic)

    @property
    def is_compacted(self) -> bool:
        """Whether the topic is compacted."""
        return self.topic in self.scope.compacted_topics

    @cached_property
    def topic_digests(self) -> pa.Table:
        """Digests of the records of the topic."""
        return compute_digests(self.topic_source.read_records(self.to_ranges(self.topic_bounds)))

    @cached_property
    def archive_digests(self) -> pa.Table:
        """Digests of the records of the archive."""
        return compute_digests(self.archive_source.archive_rows)

    @cached_property
    def shared_digests(self) -> pa.Table:
        """Digests of archived records that the topic may have; for a compacted topic, that it has."""
        if not self.is_compacted:
            return self.archive_digests
        topic_offsets = self.topic_source.read_records(self.to_ranges(self.topic_bounds)).select(
            "partition", "offset"
        )
        return compute_digests(
            self.archive_source.archive_rows.join(topic_offsets, ["partition", "offset"], "left_semi")
        )

    def has_lost_records(self, ledger: pa.Table, source: BoundedSource) -> bool:
        """Tell whether compaction removed records that batches have read from `source`."""
        return self.is_compacted and has_compacted_records(ledger, self.offset_runs(source))

    def offset_runs(self, source: BoundedSource) -> dict[TopicPartition, OffsetRuns]:
        """Return the offsets that have a record, in the topic or in the archive."""
        is_topic = source is self.topic_source
        records = source.read_records(self.to_ranges(self.topic_bounds if is_topic else self.archive_bounds))
        return find_offset_runs(self.topic, records, self.topic_digests if is_topic else self.archive_digests)

    def to_ranges(self, bounds: Mapping[int, OffsetBounds]) -> tuple[OffsetRange, ...]:
        """Convert bounds to offset ranges."""
        return tuple(
            OffsetRange(self.topic, partition, *offset_bounds)
            for partition, offset_bounds in sorted(bounds.items())
        )

    def find_source(self, ranges: Sequence[OffsetRange]) -> BoundedSource | None:
        """Return the source that has these ranges: the archive, else the topic, else None."""
        wanted_ranges = [offset_range for offset_range in ranges if offset_range.end > offset_range.start]
        if all(_is_covered(self.archive_bounds, offset_range) for offset_range in wanted_ranges):
            return self.archive_source
        return (
            self.topic_source
            if all(_is_covered(self.topic_bounds, offset_range) for offset_range in wanted_ranges)
            else None
        )

    def shared_bounds(self) -> Mapping[int, OffsetBounds]:
        """Return the offsets that both topic and archive have."""
        shared = {}
        for partition, (first, end) in self.archive_bounds.items():
            low, high = self.topic_bounds.get(partition, (0, 0))
            shared[partition] = (max(first, low), max(first, low, min(end, high)))
        return shared

    def fetch_shared_block(self, source: BoundedSource, block: OffsetBlock) -> list[dict[str, Any]]:
        """Return the records of a block in one source, within the shared bounds."""
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
    """Return the offsets of which the archive of a topic has the records.

    Offsets that had expired before they were archived are excluded. Raises DamagedTableError if a table of the
    archive is damaged.
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
            scope.warehouse / ledger_path(topic), f"has invalid rows ({cause})"
        ) from problem
    return bounds_by_partition


def read_archive_ledger(scope: AuditScope, topic: str) -> list[dict[str, Any]]:
    """Return the rows of an archive ledger, ordered by start; none without an archive.

    Raises DamagedTableError if a table of the archive is damaged.
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
            "is missing, but the rest of the archive exists",
        )
    if missing_columns := describe_missing_columns(table, ARCHIVE_LEDGER_COLUMNS):
        raise DamagedTableError(ledger_table_path, missing_columns)
    ledger_rows = read_table(table, ledger_table_path, ARCHIVE_LEDGER_COLUMNS)
    if null_columns := [name for name in ARCHIVE_LEDGER_COLUMNS[:-1] if ledger_rows.column(name).null_count]:
        raise DamagedTableError(ledger_table_path, f"has a row without {', '.join(null_columns)}")
    rows: list[dict[str, Any]] = ledger_rows.sort_by("start").to_pylist()
    return rows


def explain_archive_lag(scope: AuditScope, topic: str) -> str | None:
    """Describe how an archive ledger is behind its journal; return None if it is not.

    The journal is read first. Its newest batch may be missing from the table: a running archive writes the
    journal before the table, and a killed one completes the batch when it restarts.
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
    return f"{state_text}, but its journal has batch {newest_decided}; the batches between are missing"


def _expired_gaps(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [gap for gap in row["gaps"] or () if gap["reason"] == GAP_EXPIRED]


def _is_covered(bounds: Mapping[int, OffsetBounds], offset_range: OffsetRange) -> bool:
    first, end = bounds.get(offset_range.partition, (0, 0))
    return first <= offset_range.start and offset_range.end <= end
