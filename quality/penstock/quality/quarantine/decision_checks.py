"""Whether what was decided of quarantined records is what was done: nothing is sent that nobody decided on."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.quarantine.decisions import QuarantineDecision
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord

OffsetReach = Mapping[int, tuple[int, int]]
"""The offsets [first, end) of each partition that a stream's ledger tells of."""


def check_decisions(
    topic: str,
    records: Sequence[QuarantinedRecord],
    decisions: Sequence[QuarantineDecision],
    sent_count: int,
    read_reach: Callable[[], OffsetReach] = dict,
) -> Iterator[AuditDifference]:
    """Yield decisions on records that are not in quarantine, or that are there twice, and records sent without one.

    `sent` is how many records the producer of decisions has sent, `reach` says what the audited stream has
    read; it is asked where a decision has no record.
    """
    quarantined_positions, seen_positions = {record.position for record in records}, set()
    for decision in decisions:
        location = f"{topic}/{decision.partition} offset {decision.offset}"
        if decision.position not in quarantined_positions and not _can_be_gone(decision, read_reach()):
            yield AuditDifference(location, f"it was {decision.fate}, and is not in the quarantine")
        if decision.position in seen_positions:
            yield AuditDifference(location, "it was decided on more than once")
        seen_positions.add(decision.position)
    replayed_count = sum(1 for decision in decisions if decision.fate == "replayed")
    if sent_count > replayed_count:
        yield AuditDifference(
            topic, f"{sent_count} records were sent again, and only {replayed_count} of them were decided on"
        )


def _can_be_gone(decision: QuarantineDecision, reach: OffsetReach) -> bool:
    """Tell whether a record may have left the quarantine since it was decided on.

    A history that is replayed from a later begin, or by a contract that takes what was given up, has no row of it.
    What was sent again is set aside by every replay: without a row it would count twice.
    """
    first, end = reach.get(decision.partition, (0, 0))
    return decision.offset < first or (decision.fate == "discarded" and decision.offset < end)
