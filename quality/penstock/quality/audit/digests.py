"""Digests of records, made by Spark where the records are: in a topic, or in its archive."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.quality.audit.chain import Partition
from penstock.quality.audit.contents import DIGESTS, STRETCH, Stretch, holes
from penstock.quality.audit.extent import Extent, Run, extent_of, runs_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMPARED = ("offset", "key", "value", "timestamp", "timestamp_type", "headers")
"""What two places must say the same of."""

# A hash skips nulls: without this a key could change places with a value.
HASHED = (
    "offset, key IS NULL, key, value IS NULL, value, timestamp, timestamp_type, "
    "transform(headers, h -> struct(h.name, h.value IS NULL, h.value))"
)


def alike(records: "DataFrame") -> "DataFrame":
    """Return records of a topic, or of an archive, in the same columns: those of the archive."""
    if "timestampType" not in records.columns:
        return records.selectExpr("partition", *COMPARED[:-1], "coalesce(headers, array()) AS headers")
    return records.selectExpr(
        "partition",
        *COMPARED[:-2],
        "CASE timestampType WHEN 0 THEN 'create' ELSE 'append' END AS timestamp_type",
        "coalesce(transform(headers, h -> struct(h.key AS name, h.value AS value)), array()) AS headers",
    )


def digests(records: "DataFrame") -> pa.Table:
    """Return what each stretch of each partition holds, as `DIGESTS` has it."""
    from pyspark.sql.functions import expr

    hashed = f"xxhash64({HASHED}) AS _hash"
    placed = alike(records).selectExpr("partition", f"offset div {STRETCH} AS stretch", "offset", hashed)
    grouped = placed.groupBy("partition", "stretch").agg(
        expr("count(1) AS count"),
        expr("min(offset) AS first"),
        expr("max(offset) AS last"),
        expr("bit_xor(_hash) AS digest"),
    )
    return grouped.toArrow().select(DIGESTS.names).cast(DIGESTS)


def records_of(records: "DataFrame", stretch: Stretch) -> list[dict[str, Any]]:
    """Return the records of a stretch."""
    found = alike(records).where(
        f"partition = {stretch.partition} AND offset div {STRETCH} = {stretch.number}"
    )
    rows: list[dict[str, Any]] = found.select(*COMPARED).toArrow().sort_by("offset").to_pylist()
    return rows


def extents(topic: str, records: "DataFrame", known: pa.Table) -> dict[Partition, Extent]:
    """Return which offsets hold a record; single offsets are asked for only where some are missing."""
    loose = holes(known)
    apart = {(stretch.partition, stretch.number) for stretch in loose}
    runs: dict[int, list[Run]] = {}
    for row in known.to_pylist():
        if (row["partition"], row["stretch"]) not in apart:
            runs.setdefault(row["partition"], []).append((row["first"], row["count"]))
    for partition, offsets in _offsets(records, loose).items():
        runs.setdefault(partition, []).extend(runs_in(offsets))
    return {(topic, partition): extent_of(found) for partition, found in runs.items()}


def _offsets(records: "DataFrame", stretches: Sequence[Stretch]) -> dict[int, list[int]]:
    if not stretches:
        return {}
    wanted = records.sparkSession.createDataFrame(
        pa.table(
            {
                "partition": pa.array([one.partition for one in stretches], pa.int32()),
                "_stretch": pa.array([one.number for one in stretches], pa.int64()),
            }
        )
    )
    placed = records.selectExpr("partition", "offset", f"offset div {STRETCH} AS _stretch")
    found = placed.join(wanted, ["partition", "_stretch"]).select("partition", "offset").distinct().toArrow()
    offsets: dict[int, list[int]] = {}
    for row in found.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist():
        offsets.setdefault(row["partition"], []).append(row["offset"])
    return offsets
