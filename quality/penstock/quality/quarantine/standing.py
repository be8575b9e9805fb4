"""How each quarantined record stands: held, sent again and where, or given up; and that nothing is left over."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.ingestion.ledger import Address, read_addresses
from penstock.quality.quarantine.decisions import Decision
from penstock.quality.quarantine.records import Place, Quarantined

State = Literal["held", "replaying", "replayed", "discarded"]


@dataclass(frozen=True)
class Standing:
    """A quarantined record, and what became of it. `address` is where it is now, once it was sent again."""

    record: Quarantined
    state: State
    decision: Decision | None = None
    address: Address | None = None


def standings(
    records: Sequence[Quarantined], decisions: Sequence[Decision], delivered: Mapping[int, Address]
) -> list[Standing]:
    """Say of each record how it stands; `delivered` says where the n-th record that was sent again arrived."""
    taken = {decision.place: decision for decision in decisions}
    sequence = numbers(decisions)
    return [_standing(record, taken.get(record.place), sequence, delivered) for record in records]


def numbers(decisions: Sequence[Decision]) -> Mapping[Place, int]:
    """Return the sequence under which the producer sends each record that is sent again."""
    sent = (decision.place for decision in decisions if decision.fate == "replayed")
    return {place: number for number, place in enumerate(sent)}


def delivered_by(ledger: Path) -> Mapping[int, Address]:
    """Return where the records of a producer arrived, by their sequence."""
    return {address.sequence: address for address in read_addresses(ledger)}


def counts(standing: Sequence[Standing]) -> Mapping[State, int]:
    """Return how many records stand how; together they are all that were quarantined."""
    counted = Counter(one.state for one in standing)
    return {state: counted[state] for state in ("held", "replaying", "replayed", "discarded")}


def _standing(
    record: Quarantined,
    decision: Decision | None,
    sequence: Mapping[Place, int],
    delivered: Mapping[int, Address],
) -> Standing:
    if decision is None:
        return Standing(record, "held")
    if decision.fate == "discarded":
        return Standing(record, "discarded", decision)
    address = delivered.get(sequence[record.place])
    return Standing(record, "replaying" if address is None else "replayed", decision, address)
