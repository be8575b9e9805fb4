"""Sending quarantined records again: each that was decided on, once, through the producer that can prove it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.ingestion.producer import Batch, Checker
from penstock.ingestion.sources.source import Repeatable
from penstock.pipelines.spark.checks import REASON
from penstock.quality.quarantine.decisions import Decision, Decisions
from penstock.quality.quarantine.records import Quarantined

BATCH = 5_000


class Decided(Repeatable):
    """The records that are to be sent again, in the order of decisions; a position is a byte of their file."""

    def __init__(self, decisions: Decisions) -> None:
        self.description = f"decisions in {decisions.path.name}"
        self._decisions = decisions

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield what is to be sent from a position on, to the last decision that there is now."""
        begin = 0 if position is None else int(position["byte"])
        values: list[bytes] = []
        for decision, end in self._decisions.lines(begin):
            if decision.fate == "replayed":
                values.append(decision.value)
            if len(values) == BATCH:
                yield Batch(values, {"byte": begin})
                values, begin = [], end
        if values:
            yield Batch(values, {"byte": begin})


@dataclass(frozen=True)
class Refused:
    """A record that is not sent again, and why."""

    record: Quarantined
    why: str


@dataclass(frozen=True)
class Judgement:
    """Which records may be sent again, with the bytes that would be, and which may not."""

    good: tuple[tuple[Quarantined, bytes], ...]
    refused: tuple[Refused, ...]


Reached = Mapping[str, Mapping[int, tuple[int, int]]]
"""The streams that read a topic, and the offsets [first, end) that each has read of its partitions."""


def judge(
    records: Sequence[Quarantined],
    repaired: Mapping[Any, bytes],
    checker: Checker,
    reached: Reached,
    versions: Mapping[str, str] | None = None,
) -> Judgement:
    """Judge records as they are, or as they were repaired, by the contract of today; nothing is sent.

    A record is refused as long as any stream took it, or is still to read it: it would count there twice. So is one
    that broke a check and was not repaired, where each stream that refused it judges as it did: `versions` are
    those of the contract by which streams judge now.
    """
    refused: list[Refused] = []
    good: list[tuple[Quarantined, bytes]] = []
    for record in records:
        value = repaired.get(record.place, record.value)
        why = _taken_elsewhere(record, reached) or _broken(value, checker)
        if not why and record.place not in repaired:
            why = _checked_alike(record, versions or {})
        if why or value is None:
            refused.append(Refused(record, why))
        else:
            good.append((record, value))
    return Judgement(tuple(good), tuple(refused))


def decisions_of(judgement: Judgement, now_ms: int, why: str) -> list[Decision]:
    """Return the decisions to send what is good."""
    return [
        Decision("replayed", record.place.partition, record.place.offset, now_ms, why, value)
        for record, value in judgement.good
    ]


def discards(records: Sequence[Quarantined], now_ms: int, why: str) -> list[Decision]:
    """Return the decisions to give records up."""
    return [Decision("discarded", *record.place, now_ms, why) for record in records]


def _taken_elsewhere(record: Quarantined, reached: Reached) -> str:
    for stream, partitions in sorted(reached.items()):
        first, end = partitions.get(record.place.partition, (0, 0))
        if stream in record.streams or record.place.offset < first:
            continue
        if record.place.offset < end:
            return f"{stream} did not refuse it: sent again, it would count there twice"
        return f"{stream} has read up to offset {end} only, and may yet take it; wait until it has read the record"
    return ""


def _broken(value: bytes | None, checker: Checker) -> str:
    if value is None:
        return "it has no value; repair it, or discard it"
    problem = checker.check(Batch([value])).broken.get(0)
    return "" if problem is None else f"it still breaks the contract: {problem}"


def _checked_alike(record: Quarantined, versions: Mapping[str, str]) -> str:
    """A check is asked of the record alone: by the same version of the contract it says the same."""
    same = all(versions.get(stream) == version for stream, version in record.judges)
    if not record.reason.startswith(REASON) or not same:
        return ""
    return f"it still breaks the check {record.reason.removeprefix(REASON)}; repair it, or change the check"
