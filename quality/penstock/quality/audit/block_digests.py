"""Compares the records of two sources: digests of blocks first, then single records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

OFFSETS_PER_BLOCK = 8_192
"""The offsets per block: few enough to fetch a differing block, enough to need few digests."""

DIGEST_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("block", pa.int64()),
        pa.field("count", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("digest", pa.int64()),
    ]
)
"""The content of a block: the number of records, the first and last offset, and a digest of all records."""


@dataclass(frozen=True, order=True)
class OffsetBlock:
    """The offsets [number * OFFSETS_PER_BLOCK, (number + 1) * OFFSETS_PER_BLOCK) of a partition."""

    partition: int
    number: int


def find_differing_blocks(left: pa.Table, right: pa.Table) -> list[OffsetBlock]:
    """Return the blocks that differ, in order."""
    left_digests, right_digests = _digests_by_block(left), _digests_by_block(right)
    return sorted(
        block
        for block in {*left_digests, *right_digests}
        if left_digests.get(block) != right_digests.get(block)
    )


def find_sparse_blocks(digests: pa.Table) -> list[OffsetBlock]:
    """Return the blocks with offsets that have no record."""
    return sorted(
        OffsetBlock(row["partition"], row["block"])
        for row in digests.to_pylist()
        if row["count"] != row["last"] - row["first"] + 1
    )


def compare_records(
    left: Sequence[Mapping[str, object]], right: Sequence[Mapping[str, object]], names: tuple[str, str]
) -> Iterator[tuple[int, str]]:
    """Yield the offset and a description of each record that differs between two sources."""
    left_records, right_records = _records_by_offset(left), _records_by_offset(right)
    for offset in sorted({*left_records, *right_records}):
        left_matches, right_matches = left_records.get(offset, []), right_records.get(offset, [])
        if len(left_matches) != len(right_matches):
            yield (
                offset,
                f"{names[0]} has {len(left_matches)} records there, but {names[1]} has {len(right_matches)}",
            )
        elif left_matches != right_matches:
            name = next(name for name in left_matches[0] if left_matches[0][name] != right_matches[0][name])
            yield offset, f"its {name} differs between {names[0]} and {names[1]}"


def _digests_by_block(digests: pa.Table) -> dict[OffsetBlock, tuple[int, ...]]:
    return {
        OffsetBlock(row["partition"], row["block"]): (
            row["count"],
            row["first"],
            row["last"],
            row["digest"],
        )
        for row in digests.to_pylist()
    }


def _records_by_offset(rows: Sequence[Mapping[str, object]]) -> dict[int, list[Mapping[str, object]]]:
    records_by_offset: dict[int, list[Mapping[str, object]]] = {}
    for row in rows:
        offset = row["offset"]
        assert isinstance(offset, int)
        records_by_offset.setdefault(offset, []).append(row)
    return records_by_offset
