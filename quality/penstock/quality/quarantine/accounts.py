"""Whether what was decided of quarantined records is what was done: nothing is sent that nobody decided on."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from penstock.quality.audit.verdict import Difference
from penstock.quality.quarantine.decisions import Decision
from penstock.quality.quarantine.records import Quarantined

Reach = Mapping[int, tuple[int, int]]
"""The offsets [first, end) of each partition that a stream's ledger tells of."""


def mended(
    topic: str,
    records: Sequence[Quarantined],
    decisions: Sequence[Decision],
    sent: int,
    reach: Callable[[], Reach] = dict,
) -> Iterator[Difference]:
    """Yield decisions on records that are not in quarantine, or that are there twice, and records sent without one.

    `sent` is how many records the producer of decisions has sent, `reach` says what the audited stream has
    read; it is asked where a decision has no record.
    """
    known, seen = {record.place for record in records}, set()
    for decision in decisions:
        where = f"{topic}/{decision.partition} offset {decision.offset}"
        if decision.place not in known and not _may_be_gone(decision, reach()):
            yield Difference(where, f"it was {decision.fate}, and is not in the quarantine")
        if decision.place in seen:
            yield Difference(where, "it was decided on more than once")
        seen.add(decision.place)
    wanted = sum(1 for decision in decisions if decision.fate == "replayed")
    if sent > wanted:
        yield Difference(topic, f"{sent} records were sent again, and only {wanted} of them were decided on")


def _may_be_gone(decision: Decision, reach: Reach) -> bool:
    """Tell whether a record may have left the quarantine since it was decided on.

    A history that is replayed from a later begin, or by a contract that takes what was given up, has no row of it.
    What was sent again is set aside by every replay: without a row it would count twice.
    """
    first, end = reach.get(decision.partition, (0, 0))
    return decision.offset < first or (decision.fate == "discarded" and decision.offset < end)
