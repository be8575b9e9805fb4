"""Builds the fields of a tombstone, a record without a value, for every encoding."""

from collections.abc import Mapping

from penstock.engine.plan.sources import PlanSource, Tombstones
from penstock.engine.spark.parse.wire_columns import json_type, wire_sql


def tombstone_field_sql(source: PlanSource, tombstones: Tombstones) -> Mapping[str, str]:
    """Return SQL for the fields from a tombstone's key and Kafka's timestamp; all other fields are null."""
    columns = {column.name: column for column in source.columns}
    return {
        tombstones.key: f"try_cast(cast(key AS STRING) AS {json_type(columns[tombstones.key])})",
        source.event_time: wire_sql(columns[source.event_time], "unix_millis(timestamp)"),
        tombstones.column: "true",
    }
