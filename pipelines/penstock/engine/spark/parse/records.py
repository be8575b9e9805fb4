"""From what a topic holds to records: addressed, timed, typed, and judged.

The columns that begin with `_` are ours; steps of the user's own leave them as they are:
`_topic`, `_partition`, `_offset` (the address), `_time` (event time in milliseconds), `_invalid` (why the record
is no good, null for a good one), `_breaks` where records are checked, and `_of_N_FIELD` for a field that several
inputs have with different types, as the input of that number has it.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.engine.plan.predicates import quote_column, sql_literal
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse import avro
from penstock.engine.spark.parse.avro import WriterSchemas
from penstock.engine.spark.parse.input_columns import (
    Sources,
    collect_field_types,
    find_conflicting_fields,
    input_field_column,
    sql_by_topic,
)
from penstock.engine.spark.parse.row_checks import CheckBit, apply_row_checks
from penstock.engine.spark.parse.tombstones import tombstone_field_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KAFKA_SOURCE_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
"""What Spark's Kafka source says of a record, as far as we look at it."""

NO_WRITER_SCHEMAS: WriterSchemas = {}

MIN_EVENT_TIME_MS = -62_135_596_800_000
EVENT_TIME_END_MS = 253_402_300_800_000
"""Event times outside of these years are mistakes of the sender, and no table can show them."""


def record_ddl(source: PlanSource) -> str:
    """The DDL of a record, as the source declares it."""
    return ", ".join(f"{quote_column(column.name)} {column.type}" for column in source.columns)


def parse_records(
    raw: "DataFrame",
    sources: Sources,
    writer_schemas: WriterSchemas = NO_WRITER_SCHEMAS,
    *,
    with_bytes: bool = False,
    deferred_checks: Collection[CheckBit] = (),
) -> "DataFrame":
    """Records of a Kafka source, those that are no good included: their fields are null as far as unread.

    Each record is read as its topic's input declares it, in Avro by one of the schemas of its `writers`. With
    `bytes_too` each keeps what the topic holds of it,
    as `_arrived`, `_key` and `_value`. Checks that are asked `later` are left out.
    """
    byte_columns = ["timestamp AS _arrived", "key AS _key", "value AS _value"] if with_bytes else []
    address = ["topic AS _topic", "partition AS _partition", "offset AS _offset"]
    record_columns = [
        f"{_parse_record_sql(source, number, sources, writer_schemas)} AS {_record_column(number)}"
        for number, source in enumerate(sources)
    ]
    parsed_rows = raw.selectExpr(*address, *byte_columns, "value IS NULL AS _empty", *record_columns)
    passthrough = ["_topic", "_partition", "_offset", *(name.split(" AS ")[1] for name in byte_columns)]
    event_time_sql = sql_by_topic(
        sources, "_topic", lambda n, source: f"{_record_column(n)}.{quote_column(source.event_time)}"
    )
    invalid_reason = sql_by_topic(
        sources, "_topic", lambda n, source: invalid_reason_sql(source, _record_column(n))
    )
    field_columns = [text for name in collect_field_types(sources) for text in _field_columns(sources, name)]
    records = parsed_rows.selectExpr(
        *passthrough, f"{event_time_sql} AS _time", f"{invalid_reason} AS _invalid", *field_columns
    )
    return apply_row_checks(records, sources, deferred_checks)


def invalid_reason_sql(source: PlanSource, record_column: str) -> str:
    """SQL that says why a record is no good: null for a good one. `record` is the column that holds it."""
    event_time = f"{record_column}.{quote_column(source.event_time)}"
    tombstones = source.tombstones
    empty_condition = (
        "_empty"
        if tombstones is None
        else f"_empty AND {record_column}.{quote_column(tombstones.key)} IS NULL"
    )
    when_present = "true" if tombstones is None else "NOT _empty"
    required = {column.name: when_present for column in source.columns if column.required}
    missing_clauses = "".join(
        f" WHEN {condition} AND {record_column}.{quote_column(name)} IS NULL"
        f" THEN {sql_literal(f'missing_field:{name}')}"
        for name, condition in {**required, source.event_time: "true"}.items()
    )
    return (
        f"CASE WHEN {empty_condition} THEN 'no_value'"
        f"{_unreadable_clause(source, record_column)}"
        f"{missing_clauses}"
        f" WHEN {event_time} < {MIN_EVENT_TIME_MS} OR {event_time} >= {EVENT_TIME_END_MS}"
        " THEN 'event_time_out_of_range' END"
    )


def _unreadable_clause(source: PlanSource, record_column: str) -> str:
    if avro.is_avro(source):
        return avro.unreadable_clauses(source, record_column)
    return f" WHEN {record_column} IS NULL OR {record_column}._broken IS NOT NULL THEN 'malformed'"


def _parse_record_sql(
    source: PlanSource, number: int, sources: Sources, writer_schemas: WriterSchemas
) -> str:
    parser_sql = (
        avro.parse_record_sql(source, writer_schemas) if avro.is_avro(source) else _from_json_sql(source)
    )
    return sql_by_topic(sources, "topic", lambda candidate, _: parser_sql if candidate == number else None)


def _from_json_sql(source: PlanSource) -> str:
    schema = sql_literal(f"{record_ddl(source)}, _broken STRING")
    return f"from_json({_json_text_sql(source)}, {schema}, map('columnNameOfCorruptRecord', '_broken'))"


def _json_text_sql(source: PlanSource) -> str:
    """The JSON of a record; of one without a value what it says by its key and Kafka's time."""
    tombstones = source.tombstones
    if tombstones is None:
        return "cast(value AS STRING)"
    tombstone_columns = tombstone_field_sql(source, tombstones)
    fields = ", ".join(f"{sql_literal(name)}, {sql}" for name, sql in tombstone_columns.items())
    return f"coalesce(cast(value AS STRING), to_json(named_struct({fields})))"


def _record_column(number: int) -> str:
    """The column that holds a record as the input of this number has it."""
    return f"_record_{number}"


def _field_columns(sources: Sources, name: str) -> list[str]:
    """The column of a field; where inputs dispute about its type, a column for each of them."""

    def field_sql(number: int, source: PlanSource) -> str | None:
        is_declared = any(column.name == name for column in source.columns)
        return f"{_record_column(number)}.{quote_column(name)}" if is_declared else None

    if name not in find_conflicting_fields(sources):
        return [f"{sql_by_topic(sources, '_topic', field_sql)} AS {quote_column(name)}"]
    numbered_columns = ((number, field_sql(number, source)) for number, source in enumerate(sources))
    return [
        f"{text} AS {quote_column(input_field_column(number, name))}"
        for number, text in numbered_columns
        if text is not None
    ]
