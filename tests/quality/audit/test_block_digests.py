"""Digests of blocks of records, and the first differing record."""

import pyarrow as pa

from penstock.quality.audit.block_digests import (
    DIGEST_SCHEMA,
    OffsetBlock,
    compare_records,
    find_differing_blocks,
    find_sparse_blocks,
)


def digest(partition: int, block: int, count: int, first: int, last: int, value: int) -> dict[str, int]:
    return dict(zip(DIGEST_SCHEMA.names, (partition, block, count, first, last, value), strict=True))


def test_differing_and_sparse_blocks_are_listed() -> None:
    first_rows = [digest(0, 0, 5, 0, 4, 1), digest(0, 1, 4, 10, 14, 2), digest(1, 0, 1, 0, 0, 3)]
    second_rows = [digest(0, 0, 5, 0, 4, 1), digest(0, 1, 4, 10, 14, 9)]
    ours, theirs = (pa.Table.from_pylist(rows, DIGEST_SCHEMA) for rows in (first_rows, second_rows))
    assert find_differing_blocks(ours, theirs) == [OffsetBlock(0, 1), OffsetBlock(1, 0)]
    assert find_sparse_blocks(ours) == [OffsetBlock(0, 1)]


def test_a_differing_record_is_named_with_its_difference() -> None:
    first_rows = [{"offset": n, "key": b"k", "value": b"v"} for n in (1, 2, 4)]
    second_rows = [first_rows[0], {**first_rows[1], "value": b"w"}, first_rows[2], first_rows[2]]
    differences = list(compare_records(first_rows, second_rows, ("the topic", "the archive")))
    assert differences == [
        (2, "its value differs between the topic and the archive"),
        (4, "the topic has 1 records there, but the archive has 2"),
    ]
