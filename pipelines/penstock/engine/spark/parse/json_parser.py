"""Parses records in JSON: Spark reads them, and Python judges those that Spark cannot prove valid."""

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.predicates import sql_literal
from penstock.engine.plan.sources import Column
from penstock.engine.spark.parse.json_proof import (
    CANONICAL_JSON_OPTIONS,
    STRICT_JSON_OPTIONS,
    record_proof_sql,
)
from penstock.engine.spark.parse.record_parser import RAW_COLUMN, RecordParser, find_source_format
from penstock.engine.spark.parse.suspects import JUDGED_COLUMN, MALFORMED, UNPROVEN
from penstock.engine.spark.parse.tombstones import tombstone_field_sql
from penstock.engine.spark.parse.wire_columns import json_value_sql, parsed_record_ddl
from penstock.ingestion.contracts.record_formats.schema_header import SCHEMA_HEADER_BYTES, make_schema_header
from penstock.ingestion.registry import ReadableSchemas


class JsonParser(RecordParser):
    """Parses JSON objects, with the header of a schema registry where the format has one."""

    def parse_sql(self) -> str:
        """Return SQL that reads the JSON of a value, or of a tombstone."""
        text = f"cast({self._payload_sql('value')} AS STRING)"
        tombstone = self._tombstone_json_sql()
        return self._from_json_sql(text if tombstone is None else f"coalesce({text}, {tombstone})")

    def suspect_sql(self, record_column: str, *, with_judge: bool) -> str | None:
        """Return SQL for a value that is not proven valid."""
        if not with_judge:
            return None
        return (
            f"CASE WHEN {self._header_sql()} AND NOT {self._proof_sql(record_column)} THEN {RAW_COLUMN} END"
        )

    def judged_sql(self, record_column: str) -> str | None:
        """Return SQL that reads a judged record from its canonical form."""
        canonical = f"{JUDGED_COLUMN}.canonical"
        canonical_record = self._from_json_sql(canonical, CANONICAL_JSON_OPTIONS)
        return f"CASE WHEN {canonical} IS NOT NULL THEN {canonical_record} ELSE {record_column} END"

    def value_sql(self, column: Column, record_column: str) -> str:
        """Return SQL for the stored value of a column."""
        return json_value_sql(column, record_column)

    def unreadable_clauses(self, record_column: str, *, with_judge: bool) -> str:
        """Return clauses for an unknown schema, and for what the judge refused or has still to judge."""
        return self._schema_clause() + self._judged_clauses(record_column, with_judge=with_judge)

    def _judged_clauses(self, record_column: str, *, with_judge: bool) -> str:
        if not with_judge:
            return (
                f" WHEN {RAW_COLUMN} IS NOT NULL AND NOT {self._proof_sql(record_column)} THEN '{UNPROVEN}'"
            )
        return (
            f" WHEN {JUDGED_COLUMN}.reason IS NOT NULL THEN {JUDGED_COLUMN}.reason"
            f" WHEN {record_column} IS NULL OR {record_column}._corrupt IS NOT NULL THEN '{MALFORMED}'"
        )

    def _schema_clause(self) -> str:
        if not find_source_format(self._source).has_writer_schemas:
            return ""
        return f" WHEN {RAW_COLUMN} IS NOT NULL AND NOT {self._header_sql()} THEN 'wrong_schema'"

    def _header_sql(self) -> str:
        """Return SQL that is true if a value starts with the header of a known schema, or needs none."""
        if not find_source_format(self._source).has_writer_schemas:
            return "true"
        schemas = self._writer_schemas.get(topic_of(self._source), ReadableSchemas({})).schemas
        headers = ", ".join(f"X'{make_schema_header(number).hex()}'" for number in schemas) or "X''"
        return f"substr({RAW_COLUMN}, 1, {SCHEMA_HEADER_BYTES}) IN ({headers})"

    def _payload_sql(self, value: str) -> str:
        has_header = find_source_format(self._source).has_writer_schemas
        return f"substr({value}, {SCHEMA_HEADER_BYTES + 1})" if has_header else value

    def _proof_sql(self, record_column: str) -> str:
        return record_proof_sql(self._source, record_column, self._payload_sql(RAW_COLUMN))

    def _from_json_sql(self, text: str, options: str = STRICT_JSON_OPTIONS) -> str:
        return f"from_json({text}, {sql_literal(parsed_record_ddl(self._source))}, {options})"

    def _tombstone_json_sql(self) -> str | None:
        """Return SQL for the JSON of a tombstone, from its key and Kafka's timestamp; None if it means nothing."""
        if self._source.tombstones is None:
            return None
        tombstone_columns = tombstone_field_sql(self._source, self._source.tombstones)
        fields = ", ".join(f"{sql_literal(name)}, {sql}" for name, sql in tombstone_columns.items())
        return f"to_json(named_struct({fields}))"
