"""Whether two places hold the same records: stretches compared by a digest, and then by record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

STRETCH = 8_192
"""Offsets that share a digest: few enough to be fetched when one differs, and enough for few digests."""

DIGESTS = pa.schema(
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
class Stretch:
    """Offsets [number * STRETCH, (number + 1) * STRETCH) of a partition."""

    partition: int
    number: int


def different(one: pa.Table, other: pa.Table) -> list[Stretch]:
    """Return the stretches that are not the same in both, in order."""
    ours, theirs = _by_stretch(one), _by_stretch(other)
    return sorted(place for place in {*ours, *theirs} if ours.get(place) != theirs.get(place))


def holes(digests: pa.Table) -> list[Stretch]:
    """Return the stretches in which offsets have no record, so that counting them is not enough."""
    return sorted(
        Stretch(row["partition"], row["stretch"])
        for row in digests.to_pylist()
        if row["count"] != row["last"] - row["first"] + 1
    )


def first_difference(
    one: Sequence[Mapping[str, object]], other: Sequence[Mapping[str, object]], names: tuple[str, str]
) -> Iterator[tuple[int, str]]:
    """Yield offset and difference of each record of a stretch that is not the same in both places."""
    ours, theirs = _by_offset(one), _by_offset(other)
    for offset in sorted({*ours, *theirs}):
        mine, other_ones = ours.get(offset, []), theirs.get(offset, [])
        if len(mine) != len(other_ones):
            yield offset, f"{names[0]} has {len(mine)} records there, and {names[1]} has {len(other_ones)}"
        elif mine != other_ones:
            name = next(name for name in mine[0] if mine[0][name] != other_ones[0][name])
            yield offset, f"its {name} is not the same in {names[0]} and in {names[1]}"


def _by_stretch(digests: pa.Table) -> dict[Stretch, tuple[int, ...]]:
    return {
        Stretch(row["partition"], row["stretch"]): (row["count"], row["first"], row["last"], row["digest"])
        for row in digests.to_pylist()
    }


def _by_offset(rows: Sequence[Mapping[str, object]]) -> dict[int, list[Mapping[str, object]]]:
    found: dict[int, list[Mapping[str, object]]] = {}
    for row in rows:
        offset = row["offset"]
        assert isinstance(offset, int)
        found.setdefault(offset, []).append(row)
    return found
