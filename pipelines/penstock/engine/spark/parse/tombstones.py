"""Builds the fields of a tombstone, a record without a value, for every encoding."""

from collections.abc import Mapping

from penstock.engine.plan.sources import PlanSource, Tombstones


def tombstone_field_sql(source: PlanSource, tombstones: Tombstones) -> Mapping[str, str]:
    """Return SQL for the fields from a tombstone's key and Kafka's timestamp; all other fields are null."""
    key_type = next(column.type for column in source.columns if column.name == tombstones.key)
    return {
        tombstones.key: f"try_cast(cast(key AS STRING) AS {key_type})",
        source.event_time: "unix_millis(timestamp)",
        tombstones.column: "true",
    }
