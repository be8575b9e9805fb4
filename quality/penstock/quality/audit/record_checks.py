"""The checks of records: what producers delivered, what topic and archive hold, and what the stream read."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain as one_after_another

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.archive.archive_names import ledger_path, records_path
from penstock.engine.archive.completeness_check import find_disagreements
from penstock.engine.batch.intent import OffsetRange
from penstock.quality.audit.block_digests import (
    OFFSETS_PER_BLOCK,
    OffsetBlock,
    compare_records,
    find_differing_blocks,
)
from penstock.quality.audit.delivery_claims import PartitionLimits, check_claims
from penstock.quality.audit.offset_runs import OffsetRun, check_records_read
from penstock.quality.audit.quarantine_bytes import check_quarantine_bytes
from penstock.quality.audit.topic_view import OffsetBounds, TopicView, explain_archive_lag
from penstock.quality.audit.verdict import AuditDifference, AuditVerdict, judge_differences, unproven_verdict

COMPACTED_AWAY = "gave way to other records of its keys before it was archived"
"""What becomes of records in a topic that is compacted."""


def check_delivery(topic_view: TopicView) -> AuditVerdict:
    """What producers had acknowledged is in the topic, or has expired."""
    name = f"delivery {topic_view.topic}"
    if topic_view.broker_error:
        return unproven_verdict(name, f"the broker does not tell: {topic_view.broker_error}")
    if topic_view.producer_error:
        return unproven_verdict(name, f"a producer's ledger cannot be read: {topic_view.producer_error}")
    if not any(topic_view.claims.values()):
        obstacle = (
            "no producer of this home folder knows of a record in it, so nobody says what should be there"
        )
        return unproven_verdict(name, obstacle)
    limits = {
        (topic_view.topic, number): PartitionLimits(*bounds)
        for number, bounds in topic_view.topic_bounds.items()
    }
    held_runs = {} if topic_view.is_compacted else topic_view.offset_runs(topic_view.topic_source)
    differences = check_claims(topic_view.claims, limits, held_runs)
    count = sum(
        length
        for producer_claims in topic_view.claims.values()
        for runs in producer_claims.values()
        for _, length in runs
    )
    producer_count = sum(1 for producer_claims in topic_view.claims.values() if producer_claims)
    absence_text = (
        "have expired, or gave way to others of their keys" if topic_view.is_compacted else "have expired"
    )
    return judge_differences(
        name,
        differences,
        f"{count:,} records that {producer_count} producers know of are there, or {absence_text}",
    )


def check_archive(topic_view: TopicView) -> AuditVerdict:
    """The topic and its archive hold the same records."""
    name = f"archive {topic_view.topic}"
    if topic_view.archive_damage is not None:
        raise topic_view.archive_damage
    if lag_text := explain_archive_lag(topic_view.scope, topic_view.topic):
        return judge_differences(name, [AuditDifference(ledger_path(topic_view.topic), lag_text)], "")
    if not topic_view.archive_bounds:
        obstacle = (
            f"{topic_view.topic} has no archive, so what expires is gone; "
            f"`penstock stream start archive-{topic_view.topic}`"
        )
        return unproven_verdict(name, f"{obstacle} keeps one")
    if topic_view.broker_error:
        return unproven_verdict(name, f"the broker does not tell: {topic_view.broker_error}")
    count = sum(end - first for first, end in topic_view.shared_bounds().values())
    return judge_differences(
        name, _compare_topic_and_archive(topic_view), f"{count:,} offsets hold the same in topic and archive"
    )


def check_reading(topic_view: TopicView) -> AuditVerdict:
    """Each batch read as many records as its offsets hold, and those that it quarantined are as they were."""
    name = f"reading {topic_view.topic}"
    ledger = topic_view.scope.ledger
    ledger = ledger.filter(pc.equal(ledger.column("topic"), topic_view.topic))
    source = topic_view.find_source(ledger_ranges(ledger))
    if source is None:
        return unproven_verdict(
            name, f"some of what was read of {topic_view.topic} has expired, and is in no archive"
        )
    place_text = "the topic" if source is topic_view.topic_source else "the archive"
    read_differences = check_records_read(
        ledger, topic_view.offset_runs(source), place_text, is_compacted=topic_view.is_compacted
    )
    differences = list(
        one_after_another(read_differences, check_quarantine_bytes(topic_view, source, place_text))
    )
    if not differences and topic_view.has_lost_records(ledger, source):
        return unproven_verdict(name, f"some of what was read of {topic_view.topic} {COMPACTED_AWAY}")
    success_text = (
        f"each batch read what {place_text} holds at its offsets, and quarantined records have its bytes"
    )
    return judge_differences(name, differences, success_text)


def ledger_ranges(ledger: pa.Table) -> tuple[OffsetRange, ...]:
    """Return the offsets of each partition that a ledger reaches over."""
    ledger_bounds = ledger.group_by(["topic", "partition"]).aggregate([("start", "min"), ("end", "max")])
    return tuple(
        OffsetRange(row["topic"], row["partition"], row["start_min"], row["end_max"])
        for row in ledger_bounds.sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist()
    )


def _compare_topic_and_archive(topic_view: TopicView) -> Iterator[AuditDifference]:
    for sentence in find_disagreements(topic_view.scope.warehouse, topic_view.topic):
        yield AuditDifference(records_path(topic_view.topic), sentence)
    yield from check_expired_gaps(topic_view.topic, topic_view.expired_runs, topic_view.topic_bounds)
    shared_bounds = topic_view.shared_bounds()
    for block in find_differing_blocks(topic_view.topic_digests, topic_view.shared_digests):
        if _is_in_range(block, *shared_bounds.get(block.partition, (0, 0))):
            topic_records, archived_records = (
                topic_view.fetch_shared_block(source, block)
                for source in (topic_view.topic_source, topic_view.archive_source)
            )
            if topic_view.is_compacted:
                topic_offsets = {row["offset"] for row in topic_records}
                archived_records = [row for row in archived_records if row["offset"] in topic_offsets]
            for offset, description in compare_records(
                topic_records, archived_records, ("the topic", "the archive")
            ):
                yield AuditDifference(f"{topic_view.topic}/{block.partition} offset {offset}", description)


def check_expired_gaps(
    topic: str, expired_runs: Mapping[int, Sequence[OffsetRun]], topic_bounds: Mapping[int, OffsetBounds]
) -> Iterator[AuditDifference]:
    """Yield where an archive says that offsets had expired which the topic has: what has expired stays so."""
    for partition, runs in sorted(expired_runs.items()):
        low, _ = topic_bounds.get(partition, (0, 0))
        for first, length in runs:
            if partition in topic_bounds and first + length > low:
                yield AuditDifference(
                    f"{ledger_path(topic)}, {topic}/{partition} offset {max(first, low)}",
                    f"it is said to have expired before it was archived, and the topic has all from {low} on",
                )


def _is_in_range(block: OffsetBlock, range_start: int, range_end: int) -> bool:
    """Tell whether a stretch has offsets in a range."""
    return (
        block.number * OFFSETS_PER_BLOCK < range_end and (block.number + 1) * OFFSETS_PER_BLOCK > range_start
    )
