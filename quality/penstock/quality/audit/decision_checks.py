"""Checks that the decisions on quarantined records match what was sent."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.quarantine.decisions import QuarantineDecision
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord

OffsetReach = Mapping[int, tuple[int, int]]
"""The offsets [first, end) of each partition that a stream ledger covers."""


def check_decisions(
    topic: str,
    records: Sequence[QuarantinedRecord],
    decisions: Sequence[QuarantineDecision],
    sent_count: int,
    read_reach: Callable[[], OffsetReach] = dict,
) -> Iterator[AuditDifference]:
    """Yield decisions without a quarantined record, repeated decisions, and sent records without a decision.

    `sent_count` is the number of records that the replay producer has sent. `read_reach` returns the offsets that
    the audited stream has read; it is called only for a decision without a record.
    """
    quarantined_positions, seen_positions = {record.position for record in records}, set()
    for decision in decisions:
        location = f"{topic}/{decision.partition} offset {decision.offset}"
        if decision.position not in quarantined_positions and not _can_be_gone(decision, read_reach()):
            yield AuditDifference(location, f"{decision.fate}, but it is not in quarantine")
        if decision.position in seen_positions:
            yield AuditDifference(location, "has more than one decision")
        seen_positions.add(decision.position)
    replayed_count = sum(1 for decision in decisions if decision.fate == "replayed")
    if sent_count > replayed_count:
        yield AuditDifference(
            topic, f"{sent_count} records were replayed, but only {replayed_count} decisions say so"
        )


def _can_be_gone(decision: QuarantineDecision, reach: OffsetReach) -> bool:
    """Tell whether a record may have left the quarantine after the decision.

    A replay of the history from a later offset, or with a contract that accepts discarded records, has no row for
    it. Every replay excludes records that were sent again; without a row, such a record would count twice.
    """
    first, end = reach.get(decision.partition, (0, 0))
    return decision.offset < first or (decision.fate == "discarded" and decision.offset < end)
