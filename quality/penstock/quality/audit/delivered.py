"""Whether what producers had acknowledged is in the topic: every address once, or gone by retention alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.ingestion.ledger.entries import Acknowledged, Session
from penstock.ingestion.ledger.journal import read_entries
from penstock.ingestion.ledger.reading import segments
from penstock.quality.audit.chain import Partition
from penstock.quality.audit.extent import NOTHING, Extents, Run, extent_of
from penstock.quality.audit.verdict import Difference


@dataclass(frozen=True)
class Limits:
    """The offsets that a partition has now, [low, high); what is below has expired."""

    low: int
    high: int


Claims = Mapping[Partition, Sequence[Run]]
"""Offsets that a producer says it has delivered to."""


def claims_on(topic: str, directory: Path) -> Claims:
    """Return what a producer's ledger knows to be acknowledged in one topic."""
    return {place: runs for place, runs in acknowledged_in(directory).items() if place[0] == topic}


def acknowledged_in(directory: Path) -> Mapping[Partition, list[Run]]:
    """Return the offsets that a producer's ledger still knows to be acknowledged, as it wrote them down."""
    targets: Sequence[Partition] = []
    found: dict[Partition, list[Run]] = {}
    for path in segments(directory):
        for entry in read_entries(path):
            if isinstance(entry, Session):
                targets = [(topic, partition) for topic, partition in entry.targets]
            elif isinstance(entry, Acknowledged):
                for lane, runs in entry.runs.items():
                    found.setdefault(targets[lane], []).extend(runs)
    return found


def delivered(
    ledgers: Mapping[str, Claims],
    bounds: Mapping[Partition, Limits],
    present: Extents,
) -> Iterator[Difference]:
    """Yield acknowledged addresses that two records have, that are beyond the topic, or that hold no record.

    `present` says what the topic holds between its bounds; a partition that it does not name is judged by its
    bounds alone, as all are of a topic that is compacted.
    """
    for partition, claims in sorted(_by_partition(ledgers).items()):
        yield from _twice(partition, claims)
        limit = bounds.get(partition)
        if limit is None:
            yield Difference(
                _name(partition), f"{claims[0][1]} delivered to it, and the topic has no such partition"
            )
            continue
        merged = extent_of(run for run, _ in claims)
        for first, length in zip(merged.firsts.tolist(), merged.lengths.tolist(), strict=True):
            yield from _lost(partition, max(first, limit.low), first + length, limit, present)


def _lost(
    partition: Partition, first: int, end: int, limit: Limits, present: Extents
) -> Iterator[Difference]:
    if end > limit.high:
        yield Difference(
            f"{_name(partition)} offset {max(first, limit.high)}",
            f"it was acknowledged, and the topic ends at {limit.high}",
        )
    if partition in present:
        missing = present.get(partition, NOTHING).first_missing(first, min(end, limit.high))
        if missing is not None:
            yield Difference(
                f"{_name(partition)} offset {missing}",
                "it was acknowledged, and the topic holds no record there",
            )


def _twice(partition: Partition, claims: Iterable[tuple[Run, str]]) -> Iterator[Difference]:
    end, who = -1, ""
    for (first, length), producer in sorted(claims):
        if first < end:
            yield Difference(
                f"{_name(partition)} offset {first}", f"{producer} has it acknowledged, and so has {who}"
            )
        if first + length > end:
            end, who = first + length, producer


def _by_partition(
    ledgers: Mapping[str, Claims],
) -> Mapping[Partition, list[tuple[Run, str]]]:
    found: dict[Partition, list[tuple[Run, str]]] = {}
    for producer, partitions in ledgers.items():
        for partition, runs in partitions.items():
            found.setdefault(partition, []).extend((run, producer) for run in runs)
    return found


def _name(partition: Partition) -> str:
    return f"{partition[0]}/{partition[1]}"
