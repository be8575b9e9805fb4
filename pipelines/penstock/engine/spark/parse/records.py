"""Parses what a topic holds into typed records with address, event time and validity.

Columns that start with `_` belong to the engine, and the user's steps must keep them: `_topic`, `_partition` and
`_offset` (the address), `_time` (event time in milliseconds), `_invalid` (why the record is invalid, null for a
valid one), `_breaks` (the failed checks, if the input has checks), and `_of_N_FIELD` for a field with conflicting
types, in the type of input N.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse.input_columns import (
    Sources,
    collect_field_types,
    find_conflicting_fields,
    input_field_column,
    sql_by_topic,
)
from penstock.engine.spark.parse.parser_selection import make_parsers
from penstock.engine.spark.parse.record_parser import RAW_COLUMN, RecordParser, WriterSchemas
from penstock.engine.spark.parse.row_checks import CheckBit, apply_row_checks
from penstock.engine.spark.parse.suspects import JUDGED_COLUMN, RulesByTopic, collect_rules, judge_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KAFKA_SOURCE_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
"""The columns of Spark's Kafka source that the engine reads."""

NO_WRITER_SCHEMAS: WriterSchemas = {}

MIN_EVENT_TIME_MS = -62_135_596_800_000
EVENT_TIME_END_MS = 253_402_300_800_000
"""Event times outside these bounds are invalid: tables cannot hold them."""


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
    parsers = make_parsers(raw.sparkSession, sources, writer_schemas)
    byte_columns = ["timestamp AS _arrived", "key AS _key", "value AS _value"] if with_bytes else []
    address = ["topic AS _topic", "partition AS _partition", "offset AS _offset"]
    record_columns = [
        f"{_only_of_input(number, sources, 'topic', parser.parse_sql())} AS {_record_column(number)}"
        for number, parser in enumerate(parsers)
    ]
    flags = [flag for parser in parsers for flag in parser.flag_columns]
    parsed_rows = _add_early_columns(raw, parsers, sources).selectExpr(
        *address, *byte_columns, f"value AS {RAW_COLUMN}", *record_columns, *flags
    )
    if with_judge or any(parser.needs_judge for parser in parsers):
        rules = collect_rules(sources, writer_schemas)
        parsed_rows = _judge_suspects(parsed_rows, sources, parsers, rules, with_judge=with_judge)
    passthrough = ["_topic", "_partition", "_offset", *(name.split(" AS ")[1] for name in byte_columns)]
    event_time_sql = sql_by_topic(
        sources, "_topic", lambda n, source: _value_sql(source, parsers[n], source.event_time, n)
    )
    invalid_reason = sql_by_topic(
        sources,
        "_topic",
        lambda n, source: invalid_reason_sql(source, parsers[n], n, with_judge=with_judge),
    )
    field_columns = [
        text for name in collect_field_types(sources) for text in _field_columns(sources, parsers, name)
    ]
    records = parsed_rows.selectExpr(
        *passthrough, f"{event_time_sql} AS _time", f"{invalid_reason} AS _invalid", *field_columns
    )
    return apply_row_checks(records, sources, deferred_checks)


def _add_early_columns(raw: "DataFrame", parsers: Sequence[RecordParser], sources: Sources) -> "DataFrame":
    """Add the columns that parsers need before they parse."""
    columns: dict[str, Column] = {}
    for number, parser in enumerate(parsers):
        restrict = partial(_only_of_input, number, sources, "topic")
        columns.update(parser.early_columns(raw.sparkSession, restrict))
    return raw.withColumns(columns) if columns else raw


def _judge_suspects(
    parsed_rows: "DataFrame",
    sources: Sources,
    parsers: Sequence[RecordParser],
    rules: RulesByTopic,
    *,
    with_judge: bool,
) -> "DataFrame":
    """Add `_judged`, the verdict on each suspect, and read valid ones from their canonical form."""
    suspect = sql_by_topic(
        sources,
        "_topic",
        lambda n, _: (
            parsers[n].suspect_sql(_record_column(n), with_judge=with_judge) or "CAST(NULL AS BINARY)"
        ),
    )
    with_suspects = parsed_rows.selectExpr("*", f"{suspect} AS _suspect")
    judged = with_suspects.withColumn(JUDGED_COLUMN, judge_column("_topic", "_suspect", rules))
    return judged.selectExpr(
        *(name for name in parsed_rows.columns if not name.startswith("_record_")),
        JUDGED_COLUMN,
        *(_judged_record_sql(parser, number, sources) for number, parser in enumerate(parsers)),
    )


def _judged_record_sql(parser: RecordParser, number: int, sources: Sources) -> str:
    record_column = _record_column(number)
    judged = parser.judged_sql(record_column)
    if judged is None:
        return record_column
    return f"{_only_of_input(number, sources, '_topic', judged)} AS {record_column}"


def invalid_reason_sql(
    source: PlanSource, parser: RecordParser, number: int, *, with_judge: bool = False
) -> str:
    """Return SQL for why a record of an input is excluded: null for a valid one."""
    record_column = _record_column(number)
    event_time = _value_sql(source, parser, source.event_time, number)
    tombstones = source.tombstones
    empty_condition = (
        f"{RAW_COLUMN} IS NULL"
        if tombstones is None
        else f"{RAW_COLUMN} IS NULL AND {record_column}.{quote_column(tombstones.key)} IS NULL"
    )
    when_present = "true" if tombstones is None else f"{RAW_COLUMN} IS NOT NULL"
    required = {column.name: when_present for column in source.record_columns if column.required}
    missing_clauses = "".join(
        f" WHEN {condition} AND {record_column}.{quote_column(name)} IS NULL"
        f" THEN {sql_literal(f'missing_field:{name}')}"
        for name, condition in {**required, source.event_time: "true"}.items()
    )
    return (
        f"CASE WHEN {empty_condition} THEN '{parser.empty_reason}'"
        f"{parser.unreadable_clauses(record_column, with_judge=with_judge)}"
        f"{missing_clauses}"
        f" WHEN {event_time} < {MIN_EVENT_TIME_MS} OR {event_time} >= {EVENT_TIME_END_MS}"
        " THEN 'event_time_out_of_range' END"
    )


def _value_sql(source: PlanSource, parser: RecordParser, name: str, number: int) -> str:
    """Return SQL for the stored value of a field of a parsed record."""
    column = next(column for column in source.columns if column.name == name)
    return parser.value_sql(column, _record_column(number))


def _only_of_input(number: int, sources: Sources, topic_column: str, sql: str) -> str:
    """Return SQL that is null for records of other inputs."""
    return sql_by_topic(sources, topic_column, lambda candidate, _: sql if candidate == number else None)


def _record_column(number: int) -> str:
    """Return the column of a record as this input parses it."""
    return f"_record_{number}"


def _field_columns(sources: Sources, parsers: Sequence[RecordParser], name: str) -> list[str]:
    """Return the column of a field; for a field with conflicting types, one column for each input."""

    def field_sql(number: int, source: PlanSource) -> str | None:
        is_declared = any(column.name == name for column in source.columns)
        return _value_sql(source, parsers[number], name, number) if is_declared else None

    if name not in find_conflicting_fields(sources):
        return [f"{sql_by_topic(sources, '_topic', field_sql)} AS {quote_column(name)}"]
    numbered_columns = ((number, field_sql(number, source)) for number, source in enumerate(sources))
    return [
        f"{text} AS {quote_column(input_field_column(number, name))}"
        for number, text in numbered_columns
        if text is not None
    ]
