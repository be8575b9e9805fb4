"""Checks that acknowledged records are in their topic."""

from penstock.quality.audit.audit_check import topic_check
from penstock.quality.audit.delivery_claims import PartitionLimits, check_claims, find_deleted_topics
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import CheckOutcome, judge_differences, unproven_outcome


@topic_check("delivery", order=10)
def check_delivery(topic_view: TopicView) -> CheckOutcome:
    """Acknowledged records are in the topic, or have expired."""
    if topic_view.broker_error:
        return unproven_outcome(f"the broker is not available: {topic_view.broker_error}")
    if topic_view.producer_error:
        return unproven_outcome(f"a delivery ledger cannot be read: {topic_view.producer_error}")
    if not any(claims.record_count or claims.lost_records for claims in topic_view.claims.values()):
        obstacle = "no delivery ledger of this home has a record of it, so the expected records are unknown"
        return unproven_outcome(obstacle)
    limits = {
        (topic_view.topic, number): PartitionLimits(*bounds)
        for number, bounds in topic_view.topic_bounds.items()
    }
    held_runs = {} if topic_view.is_compacted else topic_view.offset_runs(topic_view.topic_source)
    runs_by_producer = {producer: claims.runs for producer, claims in topic_view.claims.items()}
    differences = [
        *find_deleted_topics(topic_view.topic, topic_view.claims),
        *check_claims(runs_by_producer, limits, held_runs),
    ]
    count = sum(claims.record_count for claims in topic_view.claims.values())
    producer_count = sum(1 for claims in topic_view.claims.values() if claims.record_count)
    absence_text = "have expired or were compacted away" if topic_view.is_compacted else "have expired"
    return judge_differences(
        differences,
        f"{count:,} records of {producer_count} producers are in the topic, or {absence_text}",
    )
