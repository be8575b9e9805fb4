"""Whether what was decided of quarantined records is what was done: nothing is sent that nobody decided on."""

from collections.abc import Iterator, Sequence

from penstock.quality.audit.verdict import Difference
from penstock.quality.quarantine.decisions import Decision
from penstock.quality.quarantine.records import Quarantined


def mended(
    topic: str, records: Sequence[Quarantined], decisions: Sequence[Decision], sent: int
) -> Iterator[Difference]:
    """Yield decisions on records that are not in quarantine, or that are there twice, and records sent without one.

    `sent` is how many records the producer of decisions has sent.
    """
    known, seen = {record.place for record in records}, set()
    for decision in decisions:
        where = f"{topic}/{decision.partition} offset {decision.offset}"
        if decision.place not in known:
            yield Difference(where, f"it was {decision.fate}, and is not in the quarantine")
        if decision.place in seen:
            yield Difference(where, "it was decided on more than once")
        seen.add(decision.place)
    wanted = sum(1 for decision in decisions if decision.fate == "replayed")
    if sent > wanted:
        yield Difference(topic, f"{sent} records were sent again, and only {wanted} of them were decided on")
