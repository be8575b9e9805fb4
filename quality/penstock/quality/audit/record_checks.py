"""The audit checks of records: delivery, archive and reading."""

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

COMPACTED_AWAY = "were compacted away before they were archived"
"""What compaction does to records."""


def check_delivery(topic_view: TopicView) -> AuditVerdict:
    """Acknowledged records are in the topic, or have expired."""
    name = f"delivery {topic_view.topic}"
    if topic_view.broker_error:
        return unproven_verdict(name, f"the broker is not available: {topic_view.broker_error}")
    if topic_view.producer_error:
        return unproven_verdict(name, f"a delivery ledger cannot be read: {topic_view.producer_error}")
    if not any(topic_view.claims.values()):
        obstacle = "no delivery ledger of this home has a record of it, so the expected records are unknown"
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
    absence_text = "have expired or were compacted away" if topic_view.is_compacted else "have expired"
    return judge_differences(
        name,
        differences,
        f"{count:,} records of {producer_count} producers are in the topic, or {absence_text}",
    )


def check_archive(topic_view: TopicView) -> AuditVerdict:
    """The topic and its archive have the same records."""
    name = f"archive {topic_view.topic}"
    if topic_view.archive_damage is not None:
        raise topic_view.archive_damage
    if lag_text := explain_archive_lag(topic_view.scope, topic_view.topic):
        return judge_differences(name, [AuditDifference(ledger_path(topic_view.topic), lag_text)], "")
    if not topic_view.archive_bounds:
        obstacle = (
            f"{topic_view.topic} has no archive, so expired records are lost; "
            f"start one with `penstock stream start archive-{topic_view.topic}`"
        )
        return unproven_verdict(name, obstacle)
    if topic_view.broker_error:
        return unproven_verdict(name, f"the broker is not available: {topic_view.broker_error}")
    count = sum(end - first for first, end in topic_view.shared_bounds().values())
    return judge_differences(
        name, _compare_topic_and_archive(topic_view), f"{count:,} offsets are equal in topic and archive"
    )


def check_reading(topic_view: TopicView) -> AuditVerdict:
    """Each batch read as many records as its offsets have, and quarantined records have the bytes of the topic."""
    name = f"reading {topic_view.topic}"
    ledger = topic_view.scope.ledger
    ledger = ledger.filter(pc.equal(ledger.column("topic"), topic_view.topic))
    source = topic_view.find_source(ledger_ranges(ledger))
    if source is None:
        return unproven_verdict(
            name, f"some records of {topic_view.topic} have expired, and no archive has them"
        )
    place_text = "the topic" if source is topic_view.topic_source else "the archive"
    read_differences = check_records_read(
        ledger, topic_view.offset_runs(source), place_text, is_compacted=topic_view.is_compacted
    )
    differences = list(
        one_after_another(read_differences, check_quarantine_bytes(topic_view, source, place_text))
    )
    if not differences and topic_view.has_lost_records(ledger, source):
        return unproven_verdict(name, f"some records of {topic_view.topic} {COMPACTED_AWAY}")
    success_text = (
        f"each batch read the records that {place_text} has, and quarantined records have its bytes"
    )
    return judge_differences(name, differences, success_text)


def ledger_ranges(ledger: pa.Table) -> tuple[OffsetRange, ...]:
    """Return the offset range of each partition that a ledger covers."""
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
    """Yield offsets that an archive reports as expired although the topic has them."""
    for partition, runs in sorted(expired_runs.items()):
        low, _ = topic_bounds.get(partition, (0, 0))
        for first, length in runs:
            if partition in topic_bounds and first + length > low:
                yield AuditDifference(
                    f"{ledger_path(topic)}, {topic}/{partition} offset {max(first, low)}",
                    f"the archive reports it as expired, but the topic starts at offset {low}",
                )


def _is_in_range(block: OffsetBlock, range_start: int, range_end: int) -> bool:
    """Tell whether a block has offsets in a range."""
    return (
        block.number * OFFSETS_PER_BLOCK < range_end and (block.number + 1) * OFFSETS_PER_BLOCK > range_start
    )
