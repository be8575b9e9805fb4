"""What identifies a record: a hash of 128 bits of its source and the declared fields, made by Spark."""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.batch_input import FATE_DUPLICATE
from penstock.engine.dedup.duplicates import DUPLICATES_SCHEMA, RECORD_IDS_SCHEMA
from penstock.engine.plan.predicates import quote_column
from penstock.engine.plan.sources import Deduplication, PlanSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def compute_record_ids(records: "DataFrame", source: PlanSource, rule: Deduplication) -> "DataFrame":
    """The ids of good records, as `IDS` has them. A record whose id has a null is nobody's repeat."""
    fields = ", ".join(quote_column(name) for name in rule.by)
    has_complete_id = " AND ".join(f"{quote_column(name)} IS NOT NULL" for name in rule.by)
    return (
        records.where(f"_invalid IS NULL AND {has_complete_id}")
        .selectExpr(
            *DUPLICATES_SCHEMA.names,
            # Two hashes with different beginnings, since Spark has none of 128 bits.
            *(f"xxhash64('{half}', '{source.name}', {fields}) AS _id_{half}" for half in ("hi", "lo")),
            f"_time + {rule.within} AS _forget_at",
        )
        .select(RECORD_IDS_SCHEMA.names)
    )


def mark_duplicates(records: "DataFrame", duplicates: pa.Table) -> "DataFrame":
    """Records of which these, by their addresses, are set aside as repeats."""
    duplicate_rows = records.sparkSession.createDataFrame(duplicates).selectExpr("*", "true AS _repeat")
    joined = records.join(duplicate_rows.hint("broadcast"), DUPLICATES_SCHEMA.names, "left")
    columns = [quote_column(name) for name in records.columns if name != "_aside"]
    return joined.selectExpr(*columns, f"CASE WHEN _repeat THEN '{FATE_DUPLICATE}' ELSE _aside END AS _aside")
