"""Parses what a topic holds into typed records with address, event time and validity.

Columns that start with `_` belong to the engine, and the user's steps must keep them: `_topic`, `_partition` and
`_offset` (the address), `_time` (event time in milliseconds), `_invalid` (why the record is invalid, null for a
valid one), `_breaks` (the failed checks, if the input has checks), and `_of_N_FIELD` for a field with conflicting
types, in the type of input N.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.engine.definition.predicates import quote_column, sql_literal
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
from penstock.engine.spark.parse.json_proof import (
    CANONICAL_JSON_OPTIONS,
    STRICT_JSON_OPTIONS,
    record_proof_sql,
)
from penstock.engine.spark.parse.row_checks import CheckBit, apply_row_checks
from penstock.engine.spark.parse.suspects import MALFORMED, UNPROVEN, judge_column
from penstock.engine.spark.parse.tombstones import tombstone_field_sql
from penstock.engine.spark.parse.wire_columns import avro_value_sql, json_type, json_value_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KAFKA_SOURCE_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
"""The columns of Spark's Kafka source that the engine reads."""

JUDGED_COLUMN = "_judged"

NO_WRITER_SCHEMAS: WriterSchemas = {}

MIN_EVENT_TIME_MS = -62_135_596_800_000
EVENT_TIME_END_MS = 253_402_300_800_000
"""Event times outside these bounds are invalid: tables cannot hold them."""


def record_ddl(source: PlanSource) -> str:
    """Return the DDL with which `from_json` reads a record."""
    return ", ".join(f"{quote_column(column.name)} {json_type(column)}" for column in source.record_columns)


def parse_records(
    raw: "DataFrame",
    sources: Sources,
    writer_schemas: WriterSchemas = NO_WRITER_SCHEMAS,
    *,
    with_bytes: bool = False,
    deferred_checks: Collection[CheckBit] = (),
    with_judge: bool = False,
) -> "DataFrame":
    """Parse the records of a Kafka source, invalid ones included: their unreadable fields are null.

    The input of a topic declares how to parse it; Avro is parsed by one of `writer_schemas`. `with_bytes` keeps
    the original record as `_arrived`, `_key` and `_value`. `deferred_checks` are not run here. `with_judge` judges
    records that SQL cannot prove valid; otherwise their reason is UNPROVEN.
    """
    byte_columns = ["timestamp AS _arrived", "key AS _key", "value AS _value"] if with_bytes else []
    address = ["topic AS _topic", "partition AS _partition", "offset AS _offset"]
    record_columns = [
        f"{_parse_record_sql(source, number, sources, writer_schemas)} AS {_record_column(number)}"
        for number, source in enumerate(sources)
    ]
    parsed_rows = raw.selectExpr(*address, *byte_columns, "value AS _raw", *record_columns)
    if with_judge:
        parsed_rows = _judge_suspects(parsed_rows, sources)
    passthrough = ["_topic", "_partition", "_offset", *(name.split(" AS ")[1] for name in byte_columns)]
    event_time_sql = sql_by_topic(
        sources, "_topic", lambda n, source: _value_sql(source, source.event_time, _record_column(n))
    )
    invalid_reason = sql_by_topic(
        sources,
        "_topic",
        lambda n, source: invalid_reason_sql(source, _record_column(n), with_judge=with_judge),
    )
    field_columns = [text for name in collect_field_types(sources) for text in _field_columns(sources, name)]
    records = parsed_rows.selectExpr(
        *passthrough, f"{event_time_sql} AS _time", f"{invalid_reason} AS _invalid", *field_columns
    )
    return apply_row_checks(records, sources, deferred_checks)


def _judge_suspects(parsed_rows: "DataFrame", sources: Sources) -> "DataFrame":
    """Add `_judged`, the verdict on each unproven record in JSON, and read valid ones from their canonical form."""
    suspect = sql_by_topic(
        sources, "_topic", lambda n, source: _suspect_sql(source, _record_column(n)) or "CAST(NULL AS BINARY)"
    )
    with_suspects = parsed_rows.selectExpr("*", f"{suspect} AS _suspect")
    judged = with_suspects.withColumn(JUDGED_COLUMN, judge_column("_topic", "_suspect", sources))
    return judged.selectExpr(
        *(name for name in parsed_rows.columns if not name.startswith("_record_")),
        JUDGED_COLUMN,
        *(_judged_record_sql(source, number, sources) for number, source in enumerate(sources)),
    )


def _suspect_sql(source: PlanSource, record_column: str) -> str | None:
    """Return SQL for the value of a record that is to be judged; None if the input is not in JSON."""
    if avro.is_avro(source):
        return None
    return f"CASE WHEN NOT {record_proof_sql(source, record_column, '_raw')} THEN _raw END"


def _judged_record_sql(source: PlanSource, number: int, sources: Sources) -> str:
    record_column = _record_column(number)
    if avro.is_avro(source):
        return record_column
    canonical = f"{JUDGED_COLUMN}.canonical"
    canonical_record = _from_json_sql(source, canonical, CANONICAL_JSON_OPTIONS)
    judged = f"CASE WHEN {canonical} IS NOT NULL THEN {canonical_record} ELSE {record_column} END"
    return (
        f"{sql_by_topic(sources, '_topic', lambda candidate, _: judged if candidate == number else None)} "
        f"AS {record_column}"
    )


def invalid_reason_sql(source: PlanSource, record_column: str, *, with_judge: bool = False) -> str:
    """Return SQL for why the record in a column is invalid: null for a valid one."""
    event_time = _value_sql(source, source.event_time, record_column)
    tombstones = source.tombstones
    empty_condition = (
        "_raw IS NULL"
        if tombstones is None
        else f"_raw IS NULL AND {record_column}.{quote_column(tombstones.key)} IS NULL"
    )
    when_present = "true" if tombstones is None else "_raw IS NOT NULL"
    required = {column.name: when_present for column in source.record_columns if column.required}
    missing_clauses = "".join(
        f" WHEN {condition} AND {record_column}.{quote_column(name)} IS NULL"
        f" THEN {sql_literal(f'missing_field:{name}')}"
        for name, condition in {**required, source.event_time: "true"}.items()
    )
    return (
        f"CASE WHEN {empty_condition} THEN 'no_value'"
        f"{_unreadable_clauses(source, record_column, with_judge=with_judge)}"
        f"{missing_clauses}"
        f" WHEN {event_time} < {MIN_EVENT_TIME_MS} OR {event_time} >= {EVENT_TIME_END_MS}"
        " THEN 'event_time_out_of_range' END"
    )


def _value_sql(source: PlanSource, name: str, record_column: str) -> str:
    """Return SQL for the stored value of a field of a parsed record."""
    column = next(column for column in source.columns if column.name == name)
    return (avro_value_sql if avro.is_avro(source) else json_value_sql)(column, record_column)


def _unreadable_clauses(source: PlanSource, record_column: str, *, with_judge: bool) -> str:
    if avro.is_avro(source):
        return avro.unreadable_clauses(source, record_column)
    if not with_judge:
        proof = record_proof_sql(source, record_column, "_raw")
        return f" WHEN _raw IS NOT NULL AND NOT {proof} THEN '{UNPROVEN}'"
    return (
        f" WHEN {JUDGED_COLUMN}.reason IS NOT NULL THEN {JUDGED_COLUMN}.reason"
        f" WHEN {record_column} IS NULL OR {record_column}._corrupt IS NOT NULL THEN '{MALFORMED}'"
    )


def _parse_record_sql(
    source: PlanSource, number: int, sources: Sources, writer_schemas: WriterSchemas
) -> str:
    parser_sql = (
        avro.parse_record_sql(source, writer_schemas)
        if avro.is_avro(source)
        else _from_json_sql(source, _json_text_sql(source))
    )
    return sql_by_topic(sources, "topic", lambda candidate, _: parser_sql if candidate == number else None)


def _from_json_sql(source: PlanSource, text: str, options: str = STRICT_JSON_OPTIONS) -> str:
    schema = sql_literal(f"{record_ddl(source)}, _corrupt STRING")
    return f"from_json({text}, {schema}, {options})"


def _json_text_sql(source: PlanSource) -> str:
    """Return SQL for the JSON of a record; for a tombstone, built from its key and Kafka's timestamp."""
    tombstones = source.tombstones
    if tombstones is None:
        return "cast(value AS STRING)"
    tombstone_columns = tombstone_field_sql(source, tombstones)
    fields = ", ".join(f"{sql_literal(name)}, {sql}" for name, sql in tombstone_columns.items())
    return f"coalesce(cast(value AS STRING), to_json(named_struct({fields})))"


def _record_column(number: int) -> str:
    """Return the column of a record as this input parses it."""
    return f"_record_{number}"


def _field_columns(sources: Sources, name: str) -> list[str]:
    """Return the column of a field; for a field with conflicting types, one column for each input."""

    def field_sql(number: int, source: PlanSource) -> str | None:
        is_declared = any(column.name == name for column in source.columns)
        return _value_sql(source, name, _record_column(number)) if is_declared else None

    if name not in find_conflicting_fields(sources):
        return [f"{sql_by_topic(sources, '_topic', field_sql)} AS {quote_column(name)}"]
    numbered_columns = ((number, field_sql(number, source)) for number, source in enumerate(sources))
    return [
        f"{text} AS {quote_column(input_field_column(number, name))}"
        for number, text in numbered_columns
        if text is not None
    ]
