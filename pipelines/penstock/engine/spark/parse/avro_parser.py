"""Parses records in Avro."""

from penstock.engine.plan.sources import Column
from penstock.engine.spark.parse import avro
from penstock.engine.spark.parse.record_parser import RecordParser
from penstock.engine.spark.parse.wire_columns import avro_value_sql


class AvroParser(RecordParser):
    """Parses each record by the schema that it was written with."""

    def parse_sql(self) -> str:
        """Return SQL that decodes a value."""
        return avro.parse_record_sql(self._source, self._writer_schemas)

    def value_sql(self, column: Column, record_column: str) -> str:
        """Return SQL for the stored value of a column."""
        return avro_value_sql(column, record_column)

    def unreadable_clauses(self, record_column: str, *, with_judge: bool) -> str:
        """Return clauses for an unknown schema, damaged bytes and damaged text."""
        return avro.unreadable_clauses(self._source, record_column)
