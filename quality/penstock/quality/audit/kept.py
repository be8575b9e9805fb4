"""A topic as an audit finds it: what it holds now, what its archive holds, and where a record is to be had."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException

from penstock.pipelines.archive.names import ledger_path, records_path
from penstock.pipelines.archive.reader import EXPIRED
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.journal import kept_outcomes
from penstock.pipelines.errors import StoredError
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.spark.stored.archive import StoredArchive
from penstock.pipelines.spark.stored.pieces import within
from penstock.pipelines.spark.stored.topic import StoredTopic, ranges_of
from penstock.quality.audit.chain import Partition
from penstock.quality.audit.contents import STRETCH, Stretch
from penstock.quality.audit.delivered import Claims, claims_on
from penstock.quality.audit.digests import digests, extents, records_of
from penstock.quality.audit.extent import Extent, Run, gave_way
from penstock.quality.audit.scope import Scope
from penstock.quality.audit.tables import lacking, opened_table, read
from penstock.quality.errors import DamagedTableError

BOUNDS = ("partition", "start", "end", "batch_id", "gaps")
"""What is read of an archive's ledger."""

Bounds = tuple[int, int]
"""The offsets [first, end) of a partition."""


@dataclass
class Kept:
    """One topic of a stream. Its bounds are taken at first; whatever comes later is no part of the audit."""

    scope: Scope
    topic: str
    away: str = ""
    """Why the broker could not be asked."""
    live: Mapping[int, Bounds] = field(default_factory=dict)
    """What the topic holds of each partition."""
    archived: Mapping[int, Bounds] = field(default_factory=dict)
    """What the archive has looked at of each partition; nothing without an archive."""

    claims: Mapping[str, Claims] = field(default_factory=dict)
    """What each producer knows to be acknowledged."""
    untold: str = ""
    """Why producers could not be asked."""
    damage: DamagedTableError | None = None
    """Why the archive does not count, where it has one."""

    def __post_init__(self) -> None:
        # Read before the topic's bounds are: what a feed at work has delivered since lies beyond them.
        try:
            self.claims = {who: claims_on(self.topic, folder) for who, folder in self.scope.producers.items()}
        except Exception as problem:  # noqa: BLE001  # a ledger that no producer writes may break anything
            self.untold = str(problem) or type(problem).__name__
        try:
            broker = self.scope.broker
            spans = ranges_of(self.topic, broker.bootstrap, broker.client)
            self.live = {span.partition: (span.start, span.end) for span in spans}
        except (KafkaException, StoredError) as problem:
            self.away = str(problem.args[0])
        try:
            self.archived = archived_bounds(self.scope, self.topic)
        except DamagedTableError as damage:
            self.damage = damage

    @cached_property
    def expired(self) -> Mapping[int, Sequence[Run]]:
        """The offsets of each partition that had expired before they were archived, as the archive says."""
        found: dict[int, list[Run]] = {}
        for row in archived_rows(self.scope, self.topic):
            runs = found.setdefault(row["partition"], [])
            runs += [(gap["first"], gap["last"] - gap["first"] + 1) for gap in _expired(row)]
        return found

    @cached_property
    def in_topic(self) -> StoredTopic:
        """The records that the broker has, with their headers."""
        broker = self.scope.broker
        kafka = {**broker.kafka, "includeHeaders": "true"}
        return StoredTopic(self.scope.session(), self.topic, broker.bootstrap, broker.client, kafka)

    @cached_property
    def in_archive(self) -> StoredArchive:
        """The records that the archive has."""
        path = str(self.scope.warehouse / records_path(self.topic))
        return StoredArchive(self.scope.session().read.format("delta").load(path), self.topic)

    @property
    def compacted(self) -> bool:
        """Whether records of the topic give way to the next ones of their keys."""
        return self.topic in self.scope.compacted

    @cached_property
    def live_digests(self) -> pa.Table:
        """Digests of what the topic holds."""
        return digests(self.in_topic.records(self.spans(self.live)))

    @cached_property
    def archived_digests(self) -> pa.Table:
        """Digests of what the archive holds."""
        return digests(self.in_archive.rows)

    @cached_property
    def shared_digests(self) -> pa.Table:
        """Digests of what the archive holds of that which the topic may have: if it is compacted, what it has."""
        if not self.compacted:
            return self.archived_digests
        there = self.in_topic.records(self.spans(self.live)).select("partition", "offset")
        return digests(self.in_archive.rows.join(there, ["partition", "offset"], "left_semi"))

    def lacks(self, ledger: pa.Table, source: Stored) -> bool:
        """Tell whether some of what batches read has given way to other records, and is in `source` no more."""
        return self.compacted and gave_way(ledger, self.held(source))

    def held(self, stored: Stored) -> dict[Partition, Extent]:
        """Return which offsets hold a record, in the topic or in the archive."""
        of_topic = stored is self.in_topic
        records = stored.records(self.spans(self.live if of_topic else self.archived))
        return extents(self.topic, records, self.live_digests if of_topic else self.archived_digests)

    def spans(self, bounds: Mapping[int, Bounds]) -> tuple[Range, ...]:
        """Return bounds as ranges."""
        return tuple(Range(self.topic, number, *each) for number, each in sorted(bounds.items()))

    def source_for(self, spans: Sequence[Range]) -> Stored | None:
        """Where the records of these ranges are still to be had: the archive, else the topic, else nowhere."""
        wanted = [span for span in spans if span.end > span.start]
        if all(_reaches_over(self.archived, span) for span in wanted):
            return self.in_archive
        return self.in_topic if all(_reaches_over(self.live, span) for span in wanted) else None

    def both(self) -> Mapping[int, Bounds]:
        """Return the offsets that topic and archive both have."""
        shared = {}
        for number, (first, end) in self.archived.items():
            low, high = self.live.get(number, (0, 0))
            shared[number] = (max(first, low), max(first, low, min(end, high)))
        return shared

    def stretch(self, stored: Stored, place: Stretch) -> list[dict[str, Any]]:
        """Return what one of the two has of a stretch that both may have."""
        first, end = self.both()[place.partition]
        begin = place.number * STRETCH
        asked = (max(first, begin), max(first, begin, min(end, begin + STRETCH)))
        others = {number: (bounds[0], bounds[0]) for number, bounds in self.live.items()}
        spans = self.spans({**others, place.partition: asked})
        whole = within(self.in_archive.rows, spans) if stored is self.in_archive else stored.records(spans)
        return records_of(whole, place)


def archived_bounds(scope: Scope, topic: str) -> Mapping[int, Bounds]:
    """Return the offsets that the archive of a topic has the records of, or says why there are none.

    What had expired before it was archived is outside. DamagedTableError where one of its two tables is no good.
    """
    found: dict[int, Bounds] = {}
    try:
        for row in archived_rows(scope, topic):
            lost = [gap["last"] + 1 for gap in _expired(row)]
            first, _ = found.get(row["partition"], (row["start"], 0))
            found[row["partition"]] = (max([first, *lost]), row["end"])
    except (TypeError, KeyError, pa.ArrowException) as problem:
        met = f"{type(problem).__name__}: {problem}"
        raise DamagedTableError(
            scope.warehouse / ledger_path(topic), f"has rows that no archive writes ({met})"
        ) from problem
    return found


def archived_rows(scope: Scope, topic: str) -> list[dict[str, Any]]:
    """Return the rows of an archive's ledger, by their begins; none without an archive.

    DamagedTableError where one of its two tables is no good.
    """
    path, records = scope.warehouse / ledger_path(topic), scope.warehouse / records_path(topic)
    table, there = opened_table(path), opened_table(records)
    if table is None and there is None:
        return []
    if table is None or there is None:
        raise DamagedTableError(
            records if there is None else path, "is not there, and the rest of the archive is"
        )
    if found_lacking := lacking(table, BOUNDS):
        raise DamagedTableError(path, found_lacking)
    found = read(table, path, BOUNDS)
    if empty := [name for name in BOUNDS[:-1] if found.column(name).null_count]:
        raise DamagedTableError(path, f"has a row without {', '.join(empty)}: a batch writes every number")
    rows: list[dict[str, Any]] = found.sort_by("start").to_pylist()
    return rows


def left_behind(scope: Scope, topic: str) -> str | None:
    """Say that an archive's ledger ends before what its journal has decided; None where it does not.

    The journal is read first. Its newest batch may not be in the table yet: an archive that is at work decides a
    batch before it brings it in, and one that was killed in between brings it in when it starts.
    """
    journal = scope.archive_journals.get(topic)
    decided = [] if journal is None else [outcome.batch_id for outcome in kept_outcomes(journal)]
    newest = max((row["batch_id"] for row in archived_rows(scope, topic)), default=-1)
    if not decided or newest >= max(decided) - 1:
        return None
    has = f"its newest batch is {newest}" if newest >= 0 else "it has no batch"
    return f"{has}, and its journal has decided batch {max(decided)}: batches between are not in it"


def _expired(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [gap for gap in row["gaps"] or () if gap["reason"] == EXPIRED]


def _reaches_over(bounds: Mapping[int, Bounds], span: Range) -> bool:
    first, end = bounds.get(span.partition, (0, 0))
    return first <= span.start and span.end <= end
