"""Parses flat JSON records by a strict parser in Spark's JVM, which is faster than `from_json`.

The strict parser returns a row only for a record whose fields are valid beyond doubt: strict JSON in UTF-8, no
declared field twice, each value of its type. `from_json` and the proofs in SQL decide about all other records, so
that it changes no verdict.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.jvm.classes import find_parser_class, invoke_method
from penstock.engine.spark.parse.json_parser import JsonParser
from penstock.engine.spark.parse.json_proof import record_proof_sql
from penstock.engine.spark.parse.record_parser import RAW_COLUMN, WriterSchemas
from penstock.engine.spark.parse.source_rules import build_record_rules, declared_columns
from penstock.engine.spark.parse.wire_columns import CORRUPT_COLUMN, json_type, parsed_record_ddl

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

PARSED_TYPES = re.compile(r"STRING|BIGINT|INT|DOUBLE|FLOAT|BOOLEAN|DECIMAL\(38, \d+\)")
"""The types of the fields that the strict parser reads, as `from_json` names them."""
MAX_PARSED_FIELDS = 64


def can_parse_strictly(source: PlanSource) -> bool:
    """Whether the strict parser reads the records of an input in JSON: few fields, and none of them nested."""
    columns = declared_columns(source)
    return (
        build_record_rules(source) is not None
        and len(columns) <= MAX_PARSED_FIELDS
        and all(PARSED_TYPES.fullmatch(json_type(column).upper()) for column in columns)
    )


class StrictJsonParser(JsonParser):
    """Parses the records that the strict parser accepts, and leaves the others to `from_json`."""

    def __init__(self, source: PlanSource, writer_schemas: WriterSchemas, number: int) -> None:
        super().__init__(source, writer_schemas)
        self.strict_column = f"_strict_{number}"
        """The column of the records that the strict parser has read; null for all others."""
        self._flag_column = f"_is_strict_{number}"

    def early_columns(
        self, session: "SparkSession", restrict: Callable[[str], str]
    ) -> "Mapping[str, Column]":
        """Return the column of strictly parsed records."""
        from pyspark.sql.functions import expr

        payload = expr(restrict(self._payload_sql("value")))
        parser, ddl = self._create_parser(session), parsed_record_ddl(self._source)
        return {self.strict_column: invoke_method(session, parser, "parse", [payload], ddl)}

    @property
    def flag_columns(self) -> Sequence[str]:
        """Whether the strict parser has read the record."""
        return (f"{self.strict_column} IS NOT NULL AS {self._flag_column}",)

    def parse_sql(self) -> str:
        """Return SQL for the strictly parsed record, or for the one that `from_json` reads."""
        strict = self.strict_column
        return f"CASE WHEN {strict} IS NOT NULL THEN {strict} ELSE {super().parse_sql()} END"

    def _proof_sql(self, record_column: str) -> str:
        return record_proof_sql(self._source, record_column, self._payload_sql(RAW_COLUMN), self._flag_column)

    def _create_parser(self, session: "SparkSession") -> Any:
        source = self._source
        fields = declared_columns(source)
        names = [column.name for column in source.record_columns]
        declared = [column.name for column in fields]
        create_parser: Any = find_parser_class(session)
        return create_parser(
            len(names) + 1,
            declared,
            [json_type(column).upper() for column in fields],
            [names.index(name) for name in declared],
            [column.name for column in fields if column.required or column.name == source.event_time],
            [*(name for name in names if name not in declared), CORRUPT_COLUMN],
            source.unknown_fields == "ignore",
        )
