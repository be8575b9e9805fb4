"""Whether two places hold the same records: stretches compared by a digest, and then by record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

OFFSETS_PER_BLOCK = 8_192
"""Offsets that share a digest: few enough to be fetched when one differs, and enough for few digests."""

DIGEST_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("stretch", pa.int64()),
        pa.field("count", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("digest", pa.int64()),
    ]
)
"""What a stretch of a partition holds: how many records, from where to where, and a digest of them all."""


@dataclass(frozen=True, order=True)
class OffsetBlock:
    """Offsets [number * STRETCH, (number + 1) * STRETCH) of a partition."""

    partition: int
    number: int


def find_differing_blocks(left: pa.Table, right: pa.Table) -> list[OffsetBlock]:
    """Return the stretches that are not the same in both, in order."""
    left_digests, right_digests = _digests_by_block(left), _digests_by_block(right)
    return sorted(
        block
        for block in {*left_digests, *right_digests}
        if left_digests.get(block) != right_digests.get(block)
    )


def find_sparse_blocks(digests: pa.Table) -> list[OffsetBlock]:
    """Return the stretches in which offsets have no record, so that counting them is not enough."""
    return sorted(
        OffsetBlock(row["partition"], row["stretch"])
        for row in digests.to_pylist()
        if row["count"] != row["last"] - row["first"] + 1
    )


def compare_records(
    left: Sequence[Mapping[str, object]], right: Sequence[Mapping[str, object]], names: tuple[str, str]
) -> Iterator[tuple[int, str]]:
    """Yield offset and difference of each record of a stretch that is not the same in both places."""
    left_records, right_records = _records_by_offset(left), _records_by_offset(right)
    for offset in sorted({*left_records, *right_records}):
        left_ones, right_ones = left_records.get(offset, []), right_records.get(offset, [])
        if len(left_ones) != len(right_ones):
            yield (
                offset,
                f"{names[0]} has {len(left_ones)} records there, and {names[1]} has {len(right_ones)}",
            )
        elif left_ones != right_ones:
            name = next(name for name in left_ones[0] if left_ones[0][name] != right_ones[0][name])
            yield offset, f"its {name} is not the same in {names[0]} and in {names[1]}"


def _digests_by_block(digests: pa.Table) -> dict[OffsetBlock, tuple[int, ...]]:
    return {
        OffsetBlock(row["partition"], row["stretch"]): (
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
