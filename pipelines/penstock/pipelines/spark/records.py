"""From what a topic holds to records: addressed, timed, typed, and judged.

The columns that begin with `_` are ours; steps of the user's own leave them as they are:
`_topic`, `_partition`, `_offset` (the address), `_time` (event time in milliseconds), `_invalid` (why the record
is no good, null for a good one), `_breaks` where records are checked, and `_of_N_FIELD` for a field that several
inputs have with different types, as the input of that number has it.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.pipelines.plan.predicates import literal, quoted
from penstock.pipelines.plan.source import Source
from penstock.pipelines.spark import avro
from penstock.pipelines.spark.avro import Writers
from penstock.pipelines.spark.checks import Placed, checked
from penstock.pipelines.spark.inputs import Sources, apart, by_topic, disputed, fields_of
from penstock.pipelines.spark.tombstones import said_by_deletion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KAFKA_SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
"""What Spark's Kafka source says of a record, as far as we look at it."""

NO_WRITERS: Writers = {}

YEAR_ONE = -62_135_596_800_000
YEAR_TEN_THOUSAND = 253_402_300_800_000
"""Event times outside of these years are mistakes of the sender, and no table can show them."""


def value_schema(source: Source) -> str:
    """The DDL of a record, as the source declares it."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in source.columns)


def judged(
    raw: "DataFrame",
    sources: Sources,
    writers: Writers = NO_WRITERS,
    *,
    bytes_too: bool = False,
    later: Collection[Placed] = (),
) -> "DataFrame":
    """Records of a Kafka source, those that are no good included: their fields are null as far as unread.

    Each record is read as its topic's input declares it, in Avro by one of the schemas of its `writers`. With
    `bytes_too` each keeps what the topic holds of it,
    as `_arrived`, `_key` and `_value`. Checks that are asked `later` are left out.
    """
    whole = ["timestamp AS _arrived", "key AS _key", "value AS _value"] if bytes_too else []
    address = ["topic AS _topic", "partition AS _partition", "offset AS _offset"]
    parsed = [
        f"{_parsed(source, number, sources, writers)} AS {_read(number)}"
        for number, source in enumerate(sources)
    ]
    read = raw.selectExpr(*address, *whole, "value IS NULL AS _empty", *parsed)
    kept = ["_topic", "_partition", "_offset", *(name.split(" AS ")[1] for name in whole)]
    time = by_topic(sources, "_topic", lambda n, source: f"{_read(n)}.{quoted(source.event_time)}")
    reason = by_topic(sources, "_topic", lambda n, source: invalid(source, _read(n)))
    fields = [text for name in fields_of(sources) for text in _fields(sources, name)]
    found = read.selectExpr(*kept, f"{time} AS _time", f"{reason} AS _invalid", *fields)
    return checked(found, sources, later)


def invalid(source: Source, record: str) -> str:
    """SQL that says why a record is no good: null for a good one. `record` is the column that holds it."""
    time = f"{record}.{quoted(source.event_time)}"
    deleting = source.tombstones
    empty = "_empty" if deleting is None else f"_empty AND {record}.{quoted(deleting.key)} IS NULL"
    others = "true" if deleting is None else "NOT _empty"
    required = {column.name: others for column in source.columns if column.required}
    missing = "".join(
        f" WHEN {who} AND {record}.{quoted(name)} IS NULL THEN {literal(f'missing_field:{name}')}"
        for name, who in {**required, source.event_time: "true"}.items()
    )
    return (
        f"CASE WHEN {empty} THEN 'no_value'"
        f"{_unreadable(source, record)}"
        f"{missing}"
        f" WHEN {time} < {YEAR_ONE} OR {time} >= {YEAR_TEN_THOUSAND} THEN 'event_time_out_of_range' END"
    )


def _unreadable(source: Source, record: str) -> str:
    if avro.is_avro(source):
        return avro.unreadable(source, record)
    return f" WHEN {record} IS NULL OR {record}._broken IS NOT NULL THEN 'malformed'"


def _parsed(source: Source, number: int, sources: Sources, writers: Writers) -> str:
    parse = avro.parsed(source, writers) if avro.is_avro(source) else _from_json(source)
    return by_topic(sources, "topic", lambda other, _: parse if other == number else None)


def _from_json(source: Source) -> str:
    schema = literal(f"{value_schema(source)}, _broken STRING")
    return f"from_json({_text(source)}, {schema}, map('columnNameOfCorruptRecord', '_broken'))"


def _text(source: Source) -> str:
    """The JSON of a record; of one without a value what it says by its key and Kafka's time."""
    deleting = source.tombstones
    if deleting is None:
        return "cast(value AS STRING)"
    said = said_by_deletion(source, deleting)
    fields = ", ".join(f"{literal(name)}, {sql}" for name, sql in said.items())
    return f"coalesce(cast(value AS STRING), to_json(named_struct({fields})))"


def _read(number: int) -> str:
    """The column that holds a record as the input of this number has it."""
    return f"_record_{number}"


def _fields(sources: Sources, name: str) -> list[str]:
    """The column of a field; where inputs dispute about its type, a column for each of them."""

    def of(number: int, source: Source) -> str | None:
        known = any(column.name == name for column in source.columns)
        return f"{_read(number)}.{quoted(name)}" if known else None

    if name not in disputed(sources):
        return [f"{by_topic(sources, '_topic', of)} AS {quoted(name)}"]
    found = ((number, of(number, source)) for number, source in enumerate(sources))
    return [f"{text} AS {quoted(apart(number, name))}" for number, text in found if text is not None]
