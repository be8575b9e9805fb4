"""The checks of records: what producers delivered, what topic and archive hold, and what the stream read."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain as one_after_another

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.archive.check import disagreements
from penstock.pipelines.archive.names import ledger_path, records_path
from penstock.pipelines.batch.intent import Range
from penstock.quality.audit.contents import STRETCH, Stretch, different, first_difference
from penstock.quality.audit.delivered import Limits, delivered
from penstock.quality.audit.extent import Run, taken
from penstock.quality.audit.kept import Bounds, Kept, left_behind
from penstock.quality.audit.originals import originals
from penstock.quality.audit.verdict import Difference, Verdict, judged, unproven

GAVE_WAY = "gave way to other records of its keys before it was archived"
"""What becomes of records in a topic that is compacted."""


def delivery(kept: Kept) -> Verdict:
    """What producers had acknowledged is in the topic, or has expired."""
    name = f"delivery {kept.topic}"
    if kept.away:
        return unproven(name, f"the broker does not tell: {kept.away}")
    if kept.untold:
        return unproven(name, f"a producer's ledger cannot be read: {kept.untold}")
    if not any(kept.claims.values()):
        why = "no producer of this home folder knows of a record in it, so nobody says what should be there"
        return unproven(name, why)
    limits = {(kept.topic, number): Limits(*bounds) for number, bounds in kept.live.items()}
    present = {} if kept.compacted else kept.held(kept.in_topic)
    found = delivered(kept.claims, limits, present)
    count = sum(length for each in kept.claims.values() for runs in each.values() for _, length in runs)
    writers = sum(1 for each in kept.claims.values() if each)
    gone = "have expired, or gave way to others of their keys" if kept.compacted else "have expired"
    return judged(name, found, f"{count:,} records that {writers} producers know of are there, or {gone}")


def archive(kept: Kept) -> Verdict:
    """The topic and its archive hold the same records."""
    name = f"archive {kept.topic}"
    if kept.damage is not None:
        raise kept.damage
    if behind := left_behind(kept.scope, kept.topic):
        return judged(name, [Difference(ledger_path(kept.topic), behind)], "")
    if not kept.archived:
        why = f"{kept.topic} has no archive, so what expires is gone; `penstock stream start archive-{kept.topic}`"
        return unproven(name, f"{why} keeps one")
    if kept.away:
        return unproven(name, f"the broker does not tell: {kept.away}")
    count = sum(end - first for first, end in kept.both().values())
    return judged(name, _not_the_same(kept), f"{count:,} offsets hold the same in topic and archive")


def reading(kept: Kept) -> Verdict:
    """Each batch read as many records as its offsets hold, and those that it quarantined are as they were."""
    name = f"reading {kept.topic}"
    ledger = kept.scope.ledger
    ledger = ledger.filter(pc.equal(ledger.column("topic"), kept.topic))
    source = kept.source_for(ranges_read(ledger))
    if source is None:
        return unproven(name, f"some of what was read of {kept.topic} has expired, and is in no archive")
    where = "the topic" if source is kept.in_topic else "the archive"
    counted = taken(ledger, kept.held(source), where, compacted=kept.compacted)
    found = list(one_after_another(counted, originals(kept, source, where)))
    if not found and kept.lacks(ledger, source):
        return unproven(name, f"some of what was read of {kept.topic} {GAVE_WAY}")
    fine = f"each batch read what {where} holds at its offsets, and quarantined records have its bytes"
    return judged(name, found, fine)


def ranges_read(ledger: pa.Table) -> tuple[Range, ...]:
    """Return the offsets of each partition that a ledger reaches over."""
    spans = ledger.group_by(["topic", "partition"]).aggregate([("start", "min"), ("end", "max")])
    return tuple(
        Range(row["topic"], row["partition"], row["start_min"], row["end_max"])
        for row in spans.sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist()
    )


def _not_the_same(kept: Kept) -> Iterator[Difference]:
    for sentence in disagreements(kept.scope.warehouse, kept.topic):
        yield Difference(records_path(kept.topic), sentence)
    yield from not_expired(kept.topic, kept.expired, kept.live)
    shared = kept.both()
    for place in different(kept.live_digests, kept.shared_digests):
        if _lies_in(place, *shared.get(place.partition, (0, 0))):
            live, old = (kept.stretch(stored, place) for stored in (kept.in_topic, kept.in_archive))
            if kept.compacted:
                there = {row["offset"] for row in live}
                old = [row for row in old if row["offset"] in there]
            for offset, what in first_difference(live, old, ("the topic", "the archive")):
                yield Difference(f"{kept.topic}/{place.partition} offset {offset}", what)


def not_expired(
    topic: str, expired: Mapping[int, Sequence[Run]], live: Mapping[int, Bounds]
) -> Iterator[Difference]:
    """Yield where an archive says that offsets had expired which the topic has: what has expired stays so."""
    for partition, runs in sorted(expired.items()):
        low, _ = live.get(partition, (0, 0))
        for first, length in runs:
            if partition in live and first + length > low:
                yield Difference(
                    f"{ledger_path(topic)}, {topic}/{partition} offset {max(first, low)}",
                    f"it is said to have expired before it was archived, and the topic has all from {low} on",
                )


def _lies_in(place: Stretch, first: int, end: int) -> bool:
    """Tell whether a stretch has offsets in a range."""
    return place.number * STRETCH < end and (place.number + 1) * STRETCH > first
