"""Builds the SQL that parses Avro: each record by its writer schema, all into the columns of the input.

A value is a zero byte, the id of its schema, and the record. To detect values that are truncated or too long, the
SQL appends four bytes, and the schema gets a last field that reads them. In an invalid value the field differs.
"""

import json
from collections.abc import Mapping
from typing import Any

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.plan.sources import Column, PlanSource, Tombstones
from penstock.engine.spark.parse.record_parser import WriterSchemas
from penstock.engine.spark.parse.tombstones import tombstone_field_sql
from penstock.engine.spark.parse.wire_columns import find_column_type
from penstock.ingestion.contracts.schemas import avro_record_name
from penstock.ingestion.registry import ReadableSchemas

_END_FIELD = "_end"
_END_MARK = b"\xf0PEN"
_NO_SCHEMA_HEAD = "none"
"""A head that no value has; its branch gives the column its type while no schema is known."""


def parse_record_sql(source: PlanSource, writer_schemas: WriterSchemas) -> str:
    """Return SQL for a record: null for an unknown schema, a record of nulls for a malformed value."""
    schemas_by_id = writer_schemas.get(topic_of(source), ReadableSchemas({})).schemas
    reader_schema = _reader_schema(source)
    schemas_by_head = {f"00{number:08X}": schema for number, schema in schemas_by_id.items()} or {
        _NO_SCHEMA_HEAD: reader_schema
    }
    options = (
        f"map('avroSchema', {_schema_with_mark_sql(reader_schema, optional=True)}, 'mode', 'PERMISSIVE')"
    )
    payload = f"concat(substr(value, 6), X'{_END_MARK.hex()}')"
    cases = " ".join(
        f"WHEN '{head}' THEN from_avro({payload}, {_schema_with_mark_sql(schema, optional=False)}, {options})"
        for head, schema in schemas_by_head.items()
    )
    record = f"CASE hex(substr(value, 1, 5)) {cases} END"
    if source.tombstones is None:
        return record
    return (
        f"CASE WHEN value IS NULL THEN {_tombstone_record_sql(source, source.tombstones)} ELSE {record} END"
    )


def unreadable_clauses(source: PlanSource, record_column: str) -> str:
    """Return the WHEN clauses for unreadable records; `record_column` holds the result of `parse_record_sql`."""
    invalid_texts = [
        f" WHEN {condition} THEN {sql_literal(f'invalid_utf8:{column.name}')}"
        for column in source.record_columns
        if (
            condition := find_column_type(column).invalid_text_sql(
                f"{record_column}.{quote_column(column.name)}"
            )
        )
    ]
    end_mark = f"{record_column}.{_END_FIELD}"
    return (
        f" WHEN {record_column} IS NULL THEN 'wrong_schema'"
        f" WHEN {end_mark} IS NULL OR {end_mark} <> X'{_END_MARK.hex()}' THEN 'malformed'"
        f"{''.join(invalid_texts)}"
    )


def _reader_schema(source: PlanSource) -> dict[str, Any]:
    """Return the schema of an input: every field may be null, so that a missing field is reported by name."""
    record_name = avro_record_name(topic_of(source))
    fields = [
        {
            "name": column.name,
            "type": ["null", find_column_type(column).to_avro_reader_type(f"{record_name}_{column.name}")],
            "default": None,
        }
        for column in source.record_columns
    ]
    return {
        "type": "record",
        "name": record_name,
        "namespace": "penstock",
        "fields": fields,
    }


def _schema_with_mark_sql(schema: Mapping[str, Any], *, optional: bool) -> str:
    """Return a schema with the field of the end mark, as an SQL literal."""
    mark_type = {"type": "fixed", "name": _END_FIELD, "size": len(_END_MARK)}
    end_field = (
        {"name": _END_FIELD, "type": ["null", mark_type], "default": None}
        if optional
        else {"name": _END_FIELD, "type": mark_type}
    )
    return sql_literal(json.dumps({**schema, "fields": [*schema["fields"], end_field]}))


def _tombstone_record_sql(source: PlanSource, tombstones: Tombstones) -> str:
    """Return SQL for the record of a tombstone."""
    tombstone_columns = tombstone_field_sql(source, tombstones)

    def field_sql(column: Column) -> str:
        value = tombstone_columns.get(column.name, "NULL")
        return f"{sql_literal(column.name)}, try_cast({value} AS {find_column_type(column).avro_ddl})"

    fields = map(field_sql, source.record_columns)
    return f"named_struct({', '.join(fields)}, '{_END_FIELD}', X'{_END_MARK.hex()}')"
