"""From what a topic holds to records: addressed, timed, typed, and judged.

The columns that begin with `_` are ours; steps of the user's own leave them as they are:
`_topic`, `_partition`, `_offset` (the address), `_time` (event time in milliseconds), `_invalid` (why the record
is no good, null for a good one).
"""

from typing import TYPE_CHECKING

from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.plan.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KAFKA_SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
"""What Spark's Kafka source says of a record, as far as we look at it."""

YEAR_ONE = -62_135_596_800_000
YEAR_TEN_THOUSAND = 253_402_300_800_000
"""Event times outside of these years are mistakes of the sender, and no table can show them."""


def value_schema(source: Source) -> str:
    """The DDL of a record, as the source declares it."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in source.columns)


def judged(raw: "DataFrame", source: Source, *, bytes_too: bool = False) -> "DataFrame":
    """Records of a Kafka source, those that are no good included: their fields are null as far as unread.

    With `bytes_too` each record keeps what the topic holds of it, as `_arrived`, `_key` and `_value`.
    """
    schema = f"{value_schema(source)}, _broken STRING"
    parse = (
        f"from_json(cast(value AS STRING), '{_escaped(schema)}', map('columnNameOfCorruptRecord', '_broken'))"
    )
    whole = ["timestamp AS _arrived", "key AS _key", "value AS _value"] if bytes_too else []
    address = ["topic AS _topic", "partition AS _partition", "offset AS _offset"]
    read = raw.selectExpr(*address, *whole, "value IS NULL AS _empty", f"{parse} AS _record")
    fields = [f"_record.{quoted(column.name)} AS {quoted(column.name)}" for column in source.columns]
    time = f"_record.{quoted(source.event_time)} AS _time"
    kept = [name for name in read.columns if name not in ("_empty", "_record")]
    return read.selectExpr(*kept, time, f"{invalid(source)} AS _invalid", *fields)


def invalid(source: Source) -> str:
    """SQL that says why a record is no good: null for a good one."""
    required = [
        column.name for column in source.columns if column.required or column.name == source.event_time
    ]
    time = f"_record.{quoted(source.event_time)}"
    missing = "".join(
        f" WHEN _record.{quoted(name)} IS NULL THEN 'missing_field:{_escaped(name)}'" for name in required
    )
    return (
        "CASE WHEN _empty THEN 'no_value'"
        " WHEN _record IS NULL OR _record._broken IS NOT NULL THEN 'malformed'"
        f"{missing}"
        f" WHEN {time} < {YEAR_ONE} OR {time} >= {YEAR_TEN_THOUSAND} THEN 'event_time_out_of_range' END"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
