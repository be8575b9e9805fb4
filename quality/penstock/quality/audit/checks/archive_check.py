"""Checks that a topic and its archive have the same records."""

from collections.abc import Iterator, Mapping, Sequence

from penstock.engine.archive.archive_names import ledger_path, records_path
from penstock.engine.archive.completeness_check import find_disagreements
from penstock.quality.audit.audit_check import topic_check
from penstock.quality.audit.block_digests import (
    OFFSETS_PER_BLOCK,
    OffsetBlock,
    compare_records,
    find_differing_blocks,
)
from penstock.quality.audit.offset_runs import OffsetRun
from penstock.quality.audit.topic_view import OffsetBounds, TopicView, explain_archive_lag
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences, unproven_outcome


@topic_check("archive", order=20)
def check_archive(topic_view: TopicView) -> CheckOutcome:
    """The topic and its archive have the same records."""
    if topic_view.archive_damage is not None:
        raise topic_view.archive_damage
    if lag_text := explain_archive_lag(topic_view.scope, topic_view.topic):
        return judge_differences([AuditDifference(ledger_path(topic_view.topic), lag_text)], "")
    if not topic_view.archive_bounds:
        obstacle = (
            f"{topic_view.topic} has no archive, so expired records are lost; "
            f"start one with `penstock stream start archive-{topic_view.topic}`"
        )
        return unproven_outcome(obstacle)
    if topic_view.broker_error:
        return unproven_outcome(f"the broker is not available: {topic_view.broker_error}")
    count = sum(end - first for first, end in topic_view.shared_bounds().values())
    return judge_differences(
        _compare_topic_and_archive(topic_view), f"{count:,} offsets are equal in topic and archive"
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
