"""Computes the ids of records for deduplication: a 128-bit hash of the source and the declared fields."""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.batch_input import FATE_DUPLICATE
from penstock.engine.dedup.duplicates import DUPLICATES_SCHEMA, RECORD_IDS_SCHEMA
from penstock.engine.definition.predicates import quote_column
from penstock.engine.plan.sources import Deduplication, PlanSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def compute_record_ids(records: "DataFrame", source: PlanSource, rule: Deduplication) -> "DataFrame":
    """Return the ids of valid records, with the columns of RECORD_IDS_SCHEMA. A null field means no id."""
    fields = ", ".join(quote_column(name) for name in rule.by)
    has_complete_id = " AND ".join(f"{quote_column(name)} IS NOT NULL" for name in rule.by)
    return (
        records.where(f"_invalid IS NULL AND {has_complete_id}")
        .selectExpr(
            *DUPLICATES_SCHEMA.names,
            # Two hashes with different prefixes, since Spark has no 128-bit hash.
            *(f"xxhash64('{half}', '{source.name}', {fields}) AS _id_{half}" for half in ("hi", "lo")),
            f"_time + {rule.within} AS _expires_at",
        )
        .select(RECORD_IDS_SCHEMA.names)
    )


def mark_duplicates(records: "DataFrame", duplicates: pa.Table) -> "DataFrame":
    """Mark the records at these addresses as duplicates."""
    duplicate_rows = records.sparkSession.createDataFrame(duplicates).selectExpr("*", "true AS _is_duplicate")
    joined = records.join(duplicate_rows.hint("broadcast"), DUPLICATES_SCHEMA.names, "left")
    columns = [quote_column(name) for name in records.columns if name != "_fate"]
    return joined.selectExpr(
        *columns, f"CASE WHEN _is_duplicate THEN '{FATE_DUPLICATE}' ELSE _fate END AS _fate"
    )
