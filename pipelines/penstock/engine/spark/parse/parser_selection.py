"""Selects the parser of an input by the format of its records."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.jvm.classes import find_parser_class
from penstock.engine.spark.parse.avro_parser import AvroParser
from penstock.engine.spark.parse.json_parser import JsonParser
from penstock.engine.spark.parse.python_parser import PythonParser
from penstock.engine.spark.parse.record_parser import RecordParser, WriterSchemas, find_source_format
from penstock.engine.spark.parse.strict_json_parser import StrictJsonParser, can_parse_strictly
from penstock.ingestion.contracts.record_formats.record_format import StreamParser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARSERS: Mapping[StreamParser, type[RecordParser]] = {
    "json": JsonParser,
    "avro": AvroParser,
    "python": PythonParser,
}


def make_parsers(
    session: "SparkSession", sources: Sequence[PlanSource], writer_schemas: WriterSchemas
) -> list[RecordParser]:
    """Return the parser of each input."""
    has_strict_parser = find_parser_class(session) is not None
    parsers: list[RecordParser] = []
    for number, source in enumerate(sources):
        parser_type = _PARSERS[find_source_format(source).stream_parser]
        is_strict = has_strict_parser and parser_type is JsonParser and can_parse_strictly(source)
        parsers.append(
            StrictJsonParser(source, writer_schemas, number)
            if is_strict
            else parser_type(source, writer_schemas)
        )
    return parsers
