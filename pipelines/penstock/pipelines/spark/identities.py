"""What identifies a record: a hash of 128 bits of its source and the declared fields, made by Spark."""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.batch.reading import DUPLICATE
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.plan.source import Deduplication, Source
from penstock.pipelines.repeats.ids import IDS, REPEATS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def identified(records: "DataFrame", source: Source, rule: Deduplication) -> "DataFrame":
    """The ids of good records, as `IDS` has them. A record whose id has a null is nobody's repeat."""
    fields = ", ".join(quoted(name) for name in rule.id)
    complete = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in rule.id)
    return (
        records.where(f"_invalid IS NULL AND {complete}")
        .selectExpr(
            *REPEATS.names,
            # Two hashes with different beginnings, since Spark has none of 128 bits.
            *(f"xxhash64('{half}', '{source.name}', {fields}) AS _id_{half}" for half in ("hi", "lo")),
            f"_time + {rule.horizon} AS _forget_at",
        )
        .select(IDS.names)
    )


def marked(records: "DataFrame", repeats: pa.Table) -> "DataFrame":
    """Records of which these, by their addresses, are set aside as repeats."""
    known = records.sparkSession.createDataFrame(repeats).selectExpr("*", "true AS _repeat")
    joined = records.join(known.hint("broadcast"), REPEATS.names, "left")
    others = [quoted(name) for name in records.columns if name != "_aside"]
    return joined.selectExpr(*others, f"CASE WHEN _repeat THEN '{DUPLICATE}' ELSE _aside END AS _aside")
