"""The state of each quarantined record."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.ingestion.ledger import DeliveryAddress, read_addresses
from penstock.quality.quarantine.decisions import QuarantineDecision
from penstock.quality.quarantine.quarantine_state import QuarantineState
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition


@dataclass(frozen=True)
class QuarantineStatus:
    """A quarantined record and its state. `address` is its new address after a replay."""

    record: QuarantinedRecord
    state: QuarantineState
    decision: QuarantineDecision | None = None
    address: DeliveryAddress | None = None


def build_statuses(
    records: Sequence[QuarantinedRecord],
    decisions: Sequence[QuarantineDecision],
    delivered_addresses: Mapping[int, DeliveryAddress],
) -> list[QuarantineStatus]:
    """Return the status of each record. `delivered_addresses` maps the sequence of a replay to its address."""
    decisions_by_position = {decision.position: decision for decision in decisions}
    sequence = replay_sequence(decisions)
    return [
        _build_status(
            record, decisions_by_position.get(record.position.in_own_topic), sequence, delivered_addresses
        )
        for record in records
    ]


def replay_sequence(decisions: Sequence[QuarantineDecision]) -> Mapping[RecordPosition, int]:
    """Return the sequence number under which the producer sends each replayed record."""
    replayed_positions = (decision.position for decision in decisions if decision.fate == "replayed")
    return {position: sequence for sequence, position in enumerate(replayed_positions)}


def read_delivered_addresses(ledger: Path) -> Mapping[int, DeliveryAddress]:
    """Return the addresses of a producer's delivered records, by sequence number."""
    return {address.sequence: address for address in read_addresses(ledger)}


def count_states(statuses: Sequence[QuarantineStatus]) -> Mapping[QuarantineState, int]:
    """Count the records in each state."""
    state_counts = Counter(status.state for status in statuses)
    return {state: state_counts[state] for state in QuarantineState}


def _build_status(
    record: QuarantinedRecord,
    decision: QuarantineDecision | None,
    sequence: Mapping[RecordPosition, int],
    delivered_addresses: Mapping[int, DeliveryAddress],
) -> QuarantineStatus:
    if decision is None:
        return QuarantineStatus(record, QuarantineState.PENDING)
    if decision.fate == "discarded":
        return QuarantineStatus(record, QuarantineState.DISCARDED, decision)
    address = delivered_addresses.get(sequence[record.position.in_own_topic])
    state = QuarantineState.REPLAYING if address is None else QuarantineState.REPLAYED
    return QuarantineStatus(record, state, decision, address)
