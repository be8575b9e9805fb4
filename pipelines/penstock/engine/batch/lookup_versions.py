"""Records which version of a table each record was looked up in, so that a replay reads the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.table_paths import LOOKUPS_FOLDER

LOOKUP_VERSIONS_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("table", pa.string()),
        pa.field("version", pa.int64()),
    ]
)
"""Offsets [start, end) of a partition, and the version of a table that they were looked up in."""

TableVersions = Mapping[str, int]


def build_lookup_rows(intent: BatchIntent) -> pa.Table:
    """Return the versions that a batch read, for each partition with records."""
    rows = [
        (span.topic, span.partition, span.start, span.end, table, version)
        for span in intent.ranges
        if span.end > span.start
        for table, version in intent.lookups.items()
    ]
    return pa.Table.from_pylist(
        [dict(zip(LOOKUP_VERSIONS_SCHEMA.names, row, strict=True)) for row in rows],
        schema=LOOKUP_VERSIONS_SCHEMA,
    )


@dataclass(frozen=True)
class PinnedLookups:
    """Ranges whose records read the same versions; None for the newest."""

    ranges: tuple[OffsetRange, ...]
    versions: TableVersions | None


def split_by_versions(ranges: Sequence[OffsetRange], pins: Sequence[PinnedLookups]) -> list[PinnedLookups]:
    """Split ranges so that each part reads the versions that its records read before, or else the newest.

    Parts follow the order of records in each partition.
    """
    parts = [PinnedLookups(_ranges_before(ranges, pins), None)]
    for pin in pins:
        pinned_ranges = tuple(_intersect_range(span, pin.ranges) for span in ranges)
        if parts[-1].versions == pin.versions:
            parts[-1] = PinnedLookups(_join_ranges(parts[-1].ranges, pinned_ranges), pin.versions)
        else:
            parts.append(PinnedLookups(pinned_ranges, pin.versions))
    remainder = PinnedLookups(_ranges_after(ranges, parts), None)
    return [
        part
        for part in (*parts, remainder)
        if any(offset_range.end > offset_range.start for offset_range in part.ranges)
    ] or [remainder]


def read_pinned_lookups(warehouse: StoragePath, stream: str) -> list[PinnedLookups]:
    """Return the versions that each batch of a stream read, in order; empty if no batch looked anything up."""
    path = warehouse / LOOKUPS_FOLDER / stream
    if not is_delta_table(path):
        return []
    rows = open_delta_table(path).to_pyarrow_table().sort_by("batch_id").to_pylist()
    rows_by_batch: dict[int, list[dict[str, int | str]]] = {}
    for row in rows:
        rows_by_batch.setdefault(row["batch_id"], []).append(row)
    return [_parse_pinned_lookups(batch_rows) for batch_rows in rows_by_batch.values()]


def _parse_pinned_lookups(rows: Sequence[Mapping[str, int | str]]) -> PinnedLookups:
    spans = {
        OffsetRange(str(row["topic"]), int(row["partition"]), int(row["start"]), int(row["end"])): None
        for row in rows
    }
    return PinnedLookups(tuple(spans), {str(row["table"]): int(row["version"]) for row in rows})


def _intersect_range(span: OffsetRange, candidates: Sequence[OffsetRange]) -> OffsetRange:
    """Return the part of a range that overlaps the range of the same partition; an empty range if none does."""
    for other in candidates:
        if other.name == span.name:
            start = min(max(span.start, other.start), span.end)
            return replace(span, start=start, end=max(min(span.end, other.end), start))
    return replace(span, end=span.start)


def _ranges_before(ranges: Sequence[OffsetRange], pins: Sequence[PinnedLookups]) -> tuple[OffsetRange, ...]:
    first_offsets: dict[str, int] = {}
    for pin in pins:
        for span in pin.ranges:
            first_offsets[span.name] = min(first_offsets.get(span.name, span.start), span.start)
    return tuple(
        replace(
            offset_range,
            end=max(
                min(offset_range.end, first_offsets.get(offset_range.name, offset_range.start)),
                offset_range.start,
            ),
        )
        for offset_range in ranges
    )


def _ranges_after(ranges: Sequence[OffsetRange], parts: Sequence[PinnedLookups]) -> tuple[OffsetRange, ...]:
    end_offsets = {span.name: span.start for span in ranges}
    for part in parts:
        end_offsets |= {span.name: max(span.end, end_offsets[span.name]) for span in part.ranges}
    return tuple(replace(span, start=min(end_offsets[span.name], span.end)) for span in ranges)


def _join_ranges(earlier: Sequence[OffsetRange], later: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Join each range with the one that follows it in the same partition."""
    return tuple(
        earlier_range
        if later_range.end == later_range.start
        else replace(
            later_range,
            start=later_range.start if earlier_range.end == earlier_range.start else earlier_range.start,
        )
        for earlier_range, later_range in zip(earlier, later, strict=True)
    )
