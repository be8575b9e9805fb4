"""Which version of a table each record was looked up in, as a table of its own: a replay goes by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.pipelines.batch.intent import Intent, Range
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table, is_table
from penstock.pipelines.tables.places import LOOKUPS

SEEN = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("table", pa.string()),
        pa.field("version", pa.int64()),
    ]
)
"""Records, offsets [start, end) of a partition, and the version of a table that they were looked up in."""

Versions = Mapping[str, int]


def seen_by(intent: Intent) -> pa.Table:
    """What a batch saw, of each partition that it read records of."""
    rows = [
        (span.topic, span.partition, span.start, span.end, table, version)
        for span in intent.ranges
        if span.end > span.start
        for table, version in intent.lookups.items()
    ]
    return pa.Table.from_pylist([dict(zip(SEEN.names, row, strict=True)) for row in rows], schema=SEEN)


@dataclass(frozen=True)
class Seen:
    """Ranges whose records see the same versions; None for the newest."""

    ranges: tuple[Range, ...]
    versions: Versions | None


def parted(ranges: Sequence[Range], seen: Sequence[Seen]) -> list[Seen]:
    """Cut ranges so that each part sees what its records saw before; what was read by nobody sees the newest.

    Parts follow each other in the order of their records, in each partition.
    """
    parts = [Seen(_before(ranges, seen), None)]
    for one in seen:
        spans = tuple(_within(span, one.ranges) for span in ranges)
        if parts[-1].versions == one.versions:
            parts[-1] = Seen(_joined(parts[-1].ranges, spans), one.versions)
        else:
            parts.append(Seen(spans, one.versions))
    rest = Seen(_after(ranges, parts), None)
    return [part for part in (*parts, rest) if any(s.end > s.start for s in part.ranges)] or [rest]


def recorded(warehouse: Place, stream: str) -> list[Seen]:
    """What each batch of a stream saw, in order; nothing where no batch looked anything up."""
    path = warehouse / LOOKUPS / stream
    if not is_table(path):
        return []
    rows = delta_table(path).to_pyarrow_table().sort_by("batch_id").to_pylist()
    batches: dict[int, list[dict[str, int | str]]] = {}
    for row in rows:
        batches.setdefault(row["batch_id"], []).append(row)
    return [_of_batch(told) for told in batches.values()]


def _of_batch(rows: Sequence[Mapping[str, int | str]]) -> Seen:
    spans = {
        Range(str(row["topic"]), int(row["partition"]), int(row["start"]), int(row["end"])): None
        for row in rows
    }
    return Seen(tuple(spans), {str(row["table"]): int(row["version"]) for row in rows})


def _within(span: Range, others: Sequence[Range]) -> Range:
    """The part of a range that lies in that of the same partition; an empty one where none does."""
    for other in others:
        if other.name == span.name:
            start = min(max(span.start, other.start), span.end)
            return replace(span, start=start, end=max(min(span.end, other.end), start))
    return replace(span, end=span.start)


def _before(ranges: Sequence[Range], seen: Sequence[Seen]) -> tuple[Range, ...]:
    first: dict[str, int] = {}
    for one in seen:
        for span in one.ranges:
            first[span.name] = min(first.get(span.name, span.start), span.start)
    return tuple(replace(s, end=max(min(s.end, first.get(s.name, s.start)), s.start)) for s in ranges)


def _after(ranges: Sequence[Range], parts: Sequence[Seen]) -> tuple[Range, ...]:
    ends = {span.name: span.start for span in ranges}
    for part in parts:
        ends |= {span.name: max(span.end, ends[span.name]) for span in part.ranges}
    return tuple(replace(span, start=min(ends[span.name], span.end)) for span in ranges)


def _joined(one: Sequence[Range], other: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges of the same partitions, each followed by another."""
    return tuple(
        first
        if last.end == last.start
        else replace(last, start=last.start if first.end == first.start else first.start)
        for first, last in zip(one, other, strict=True)
    )
