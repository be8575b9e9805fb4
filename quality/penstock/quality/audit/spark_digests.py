"""Digests of records, computed by Spark in a topic or in its archive."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.ingestion.ledger import to_offset_runs
from penstock.quality.audit.block_digests import (
    DIGEST_SCHEMA,
    OFFSETS_PER_BLOCK,
    OffsetBlock,
    find_sparse_blocks,
)
from penstock.quality.audit.offset_runs import OffsetRun, OffsetRuns, merge_runs
from penstock.quality.ledger_rows import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMPARED_COLUMNS = ("offset", "key", "value", "timestamp", "timestamp_type", "headers")
"""The columns that must be equal in both sources."""

# xxhash64 skips nulls; the null flags keep a key distinct from a value.
HASHED_COLUMNS_SQL = (
    "offset, key IS NULL, key, value IS NULL, value, timestamp, timestamp_type, "
    "transform(headers, h -> struct(h.name, h.value IS NULL, h.value))"
)


def normalize_columns(records: "DataFrame") -> "DataFrame":
    """Return records of a topic or of an archive with the columns of the archive."""
    if "timestampType" not in records.columns:
        return records.selectExpr(
            "partition", *COMPARED_COLUMNS[:-1], "coalesce(headers, array()) AS headers"
        )
    return records.selectExpr(
        "partition",
        *COMPARED_COLUMNS[:-2],
        "CASE timestampType WHEN 0 THEN 'create' ELSE 'append' END AS timestamp_type",
        "coalesce(transform(headers, h -> struct(h.key AS name, h.value AS value)), array()) AS headers",
    )


def compute_digests(records: "DataFrame") -> pa.Table:
    """Return the digests of each block of each partition, with DIGEST_SCHEMA."""
    from pyspark.sql.functions import expr

    hash_sql = f"xxhash64({HASHED_COLUMNS_SQL}) AS _hash"
    hashed_records = normalize_columns(records).selectExpr(
        "partition", f"offset div {OFFSETS_PER_BLOCK} AS block", "offset", hash_sql
    )
    grouped = hashed_records.groupBy("partition", "block").agg(
        expr("count(1) AS count"),
        expr("min(offset) AS first"),
        expr("max(offset) AS last"),
        expr("bit_xor(_hash) AS digest"),
    )
    return grouped.toArrow().select(DIGEST_SCHEMA.names).cast(DIGEST_SCHEMA)


def fetch_block(records: "DataFrame", block: OffsetBlock) -> list[dict[str, Any]]:
    """Return the records of a block."""
    block_records = normalize_columns(records).where(
        f"partition = {block.partition} AND offset div {OFFSETS_PER_BLOCK} = {block.number}"
    )
    rows: list[dict[str, Any]] = (
        block_records.select(*COMPARED_COLUMNS).toArrow().sort_by("offset").to_pylist()
    )
    return rows


def find_offset_runs(
    topic: str, records: "DataFrame", digest_rows: pa.Table
) -> dict[TopicPartition, OffsetRuns]:
    """Return the offsets that have a record. Reads single offsets only of blocks with gaps."""
    sparse_blocks = find_sparse_blocks(digest_rows)
    sparse_keys = {(block.partition, block.number) for block in sparse_blocks}
    runs: dict[int, list[OffsetRun]] = {}
    for row in digest_rows.to_pylist():
        if (row["partition"], row["block"]) not in sparse_keys:
            runs.setdefault(row["partition"], []).append((row["first"], row["count"]))
    for partition, offsets in _fetch_offsets(records, sparse_blocks).items():
        runs.setdefault(partition, []).extend(to_offset_runs(offsets))
    return {(topic, partition): merge_runs(partition_runs) for partition, partition_runs in runs.items()}


def _fetch_offsets(records: "DataFrame", blocks: Sequence[OffsetBlock]) -> dict[int, list[int]]:
    if not blocks:
        return {}
    wanted_blocks = records.sparkSession.createDataFrame(
        pa.table(
            {
                "partition": pa.array([block.partition for block in blocks], pa.int32()),
                "_block": pa.array([block.number for block in blocks], pa.int64()),
            }
        )
    )
    blocked_records = records.selectExpr("partition", "offset", f"offset div {OFFSETS_PER_BLOCK} AS _block")
    offset_rows = (
        blocked_records.join(wanted_blocks, ["partition", "_block"])
        .select("partition", "offset")
        .distinct()
        .toArrow()
    )
    offsets: dict[int, list[int]] = {}
    for row in offset_rows.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist():
        offsets.setdefault(row["partition"], []).append(row["offset"])
    return offsets
