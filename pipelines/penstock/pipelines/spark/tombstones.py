"""What a record without a value says, whatever its topic is encoded in."""

from collections.abc import Mapping

from penstock.pipelines.plan.source import Source, Tombstones


def said_by_deletion(source: Source, deleting: Tombstones) -> Mapping[str, str]:
    """SQL of the fields that its key and Kafka's time give; all others are null."""
    kind = next(column.type for column in source.columns if column.name == deleting.key)
    return {
        deleting.key: f"try_cast(cast(key AS STRING) AS {kind})",
        source.event_time: "unix_millis(timestamp)",
        deleting.column: "true",
    }
