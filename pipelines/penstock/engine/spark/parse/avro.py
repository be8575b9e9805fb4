"""Builds the SQL that parses Avro: each record by its writer schema, all into the columns of the input.

A value is a zero byte, the id of its schema, and the record. To detect values that are truncated or too long, the
SQL appends four bytes, and the schema gets a last field that reads them. In an invalid value the field differs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.plan.sources import Column, PlanSource, Tombstones, TopicOrigin
from penstock.engine.spark.parse.tombstones import tombstone_field_sql
from penstock.ingestion.contracts import ContractField
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.field_types.type_discovery import parse_spark_type, parse_type
from penstock.ingestion.contracts.schemas import avro_record_name
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry import ReadableSchemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SchemaLookup: TypeAlias = Callable[[str, Sequence[ContractField]], ReadableSchemas]
"""Returns the writer schemas of a topic that a reader with these fields can read."""
WriterSchemas: TypeAlias = Mapping[str, ReadableSchemas]
"""The writer schemas of a batch, by topic."""

_END_FIELD = "_end"
_END_MARK = b"\xf0PEN"
_NO_SCHEMA_HEAD = "none"
"""A head that no value has; its branch gives the column its type while no schema is known."""


def refuse_without_registry(topic: str, _fields: Sequence[ContractField]) -> ReadableSchemas:
    """Raise RegistryError: without a schema registry, Avro cannot be read."""
    raise RegistryError(f"{topic} is in Avro, which needs a schema registry. Configure the registry")


def is_avro(source: PlanSource) -> bool:
    """Whether the records of an input are in Avro."""
    return isinstance(source.origin, TopicOrigin) and source.origin.encoding == "avro"


def load_writer_schemas(sources: Sequence[PlanSource], schema_lookup: SchemaLookup) -> WriterSchemas:
    """Return the writer schemas of every input in Avro."""
    return {
        topic_of(source): schema_lookup(topic_of(source), contract_fields(source))
        for source in sources
        if is_avro(source)
    }


def contract_fields(source: PlanSource) -> list[ContractField]:
    """Return the fields of an input as fields of a contract."""
    return [
        ContractField(column.name, str(_field_type(column)), "", column.required)
        for column in source.record_columns
    ]


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
        if (condition := _field_type(column).invalid_text_sql(f"{record_column}.{quote_column(column.name)}"))
    ]
    end_mark = f"{record_column}.{_END_FIELD}"
    return (
        f" WHEN {record_column} IS NULL THEN 'wrong_schema'"
        f" WHEN {end_mark} IS NULL OR {end_mark} <> X'{_END_MARK.hex()}' THEN 'malformed'"
        f"{''.join(invalid_texts)}"
    )


def refuse_unknown_schemas(raw: "DataFrame", writer_schemas: WriterSchemas) -> None:
    """Raise RegistryError for records of unknown schemas while the registry is unavailable: it may know them."""
    for topic, (schemas, registry_error) in writer_schemas.items():
        if not registry_error:
            continue
        known_ids = ", ".join(f"'{number:08X}'" for number in schemas) or "''"
        head = "hex(substr(value, 2, 4))"
        unknown_records = raw.where(
            f"topic = '{topic}' AND substr(value, 1, 1) = X'00' AND {head} NOT IN ({known_ids})"
        )
        for row in unknown_records.selectExpr(f"conv({head}, 16, 10) AS id").limit(1).collect():
            raise RegistryError(
                f"{topic} has records of schema {row.id}, which is not cached. {registry_error}"
            )


def _reader_schema(source: PlanSource) -> dict[str, Any]:
    """Return the schema of an input: every field may be null, so that a missing field is reported by name."""
    record_name = avro_record_name(topic_of(source))
    fields = [
        {
            "name": column.name,
            "type": ["null", _field_type(column).to_avro_reader_type(f"{record_name}_{column.name}")],
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


def _field_type(column: Column) -> FieldType:
    return parse_type(column.field_type) if column.field_type else parse_spark_type(column.type)


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
        return f"{sql_literal(column.name)}, try_cast({value} AS {_field_type(column).avro_ddl})"

    fields = map(field_sql, source.record_columns)
    return f"named_struct({', '.join(fields)}, '{_END_FIELD}', X'{_END_MARK.hex()}')"
