"""What a record without a value says, whatever its topic is encoded in."""

from collections.abc import Mapping

from penstock.engine.plan.sources import PlanSource, Tombstones


def tombstone_field_sql(source: PlanSource, tombstones: Tombstones) -> Mapping[str, str]:
    """SQL of the fields that its key and Kafka's time give; all others are null."""
    key_type = next(column.type for column in source.columns if column.name == tombstones.key)
    return {
        tombstones.key: f"try_cast(cast(key AS STRING) AS {key_type})",
        source.event_time: "unix_millis(timestamp)",
        tombstones.column: "true",
    }
