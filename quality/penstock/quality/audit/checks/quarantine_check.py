"""Checks that the decisions on quarantined records match what was sent."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow.compute as pc

from penstock.ingestion.ledger import read_ledger_state
from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences
from penstock.quality.ledger_rows import group_by_partition
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, read_quarantine
from penstock.quality.quarantine.record_status import build_statuses, count_states, read_delivered_addresses

OffsetReach = Mapping[int, tuple[int, int]]
"""The offsets [first, end) of each partition that a stream ledger covers."""


@stream_check("quarantine", order=70)
def check_quarantine(scope: AuditScope) -> CheckOutcome:
    """Decisions on quarantined records were carried out, and every record has a state."""
    differences: list[AuditDifference] = []
    state_counts: Counter[str] = Counter()
    for topic in scope.topics:
        # In this order: records are quarantined before they are decided on, and decided on before they are sent.
        ledger = scope.producer_ledgers.get(f"quarantine-{topic}")
        delivered = {} if ledger is None else read_delivered_addresses(ledger)
        sent_count = 0 if ledger is None else read_ledger_state(ledger).acknowledged_until
        decisions = DecisionLog(scope.decisions_folder / f"{topic}.jsonl").read_all()
        records = read_quarantine(scope.warehouse, topic)
        differences += check_decisions(
            topic, records, decisions, sent_count, partial(_ledger_reach, scope, topic)
        )
        state_counts.update(count_states(build_statuses(records, decisions, delivered)))
    success_text = " + ".join(f"{count} {state}" for state, count in state_counts.items())
    return judge_differences(differences, f"{state_counts.total()} quarantined = {success_text}")


def _ledger_reach(scope: AuditScope, topic: str) -> OffsetReach:
    """Return the offsets of a topic that the stream ledger covers, by partition."""
    return {
        partition: (pc.min(rows.column("start")).as_py(), pc.max(rows.column("end")).as_py())
        for (topic_name, partition), rows in group_by_partition(scope.ledger)
        if topic_name == topic
    }


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
