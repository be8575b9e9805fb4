"""How each quarantined record stands: held, sent again and where, or given up; and that nothing is left over."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.ingestion.ledger import DeliveryAddress, read_addresses
from penstock.quality.quarantine.decisions import QuarantineDecision
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition

QuarantineState = Literal["held", "replaying", "replayed", "discarded"]


@dataclass(frozen=True)
class QuarantineStatus:
    """A quarantined record, and what became of it. `address` is where it is now, once it was sent again."""

    record: QuarantinedRecord
    state: QuarantineState
    decision: QuarantineDecision | None = None
    address: DeliveryAddress | None = None


def build_statuses(
    records: Sequence[QuarantinedRecord],
    decisions: Sequence[QuarantineDecision],
    delivered_addresses: Mapping[int, DeliveryAddress],
) -> list[QuarantineStatus]:
    """Say of each record how it stands; `delivered` says where the n-th record that was sent again arrived."""
    decisions_by_position = {decision.position: decision for decision in decisions}
    sequence = replay_sequence(decisions)
    return [
        _build_status(record, decisions_by_position.get(record.position), sequence, delivered_addresses)
        for record in records
    ]


def replay_sequence(decisions: Sequence[QuarantineDecision]) -> Mapping[RecordPosition, int]:
    """Return the sequence under which the producer sends each record that is sent again."""
    replayed_positions = (decision.position for decision in decisions if decision.fate == "replayed")
    return {position: sequence for sequence, position in enumerate(replayed_positions)}


def read_delivered_addresses(ledger: Path) -> Mapping[int, DeliveryAddress]:
    """Return where the records of a producer arrived, by their sequence."""
    return {address.sequence: address for address in read_addresses(ledger)}


def count_states(statuses: Sequence[QuarantineStatus]) -> Mapping[QuarantineState, int]:
    """Return how many records stand how; together they are all that were quarantined."""
    state_counts = Counter(status.state for status in statuses)
    return {state: state_counts[state] for state in ("held", "replaying", "replayed", "discarded")}


def _build_status(
    record: QuarantinedRecord,
    decision: QuarantineDecision | None,
    sequence: Mapping[RecordPosition, int],
    delivered_addresses: Mapping[int, DeliveryAddress],
) -> QuarantineStatus:
    if decision is None:
        return QuarantineStatus(record, "held")
    if decision.fate == "discarded":
        return QuarantineStatus(record, "discarded", decision)
    address = delivered_addresses.get(sequence[record.position])
    return QuarantineStatus(record, "replaying" if address is None else "replayed", decision, address)
