"""Selects the parser of an input by the format of its records."""

from collections.abc import Mapping

from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse.avro_parser import AvroParser
from penstock.engine.spark.parse.json_parser import JsonParser
from penstock.engine.spark.parse.python_parser import PythonParser
from penstock.engine.spark.parse.record_parser import RecordParser, WriterSchemas, find_source_format
from penstock.ingestion.contracts.record_formats.record_format import StreamParser

_PARSERS: Mapping[StreamParser, type[RecordParser]] = {
    "json": JsonParser,
    "avro": AvroParser,
    "python": PythonParser,
}


def make_parser(source: PlanSource, writer_schemas: WriterSchemas) -> RecordParser:
    """Return the parser of an input."""
    return _PARSERS[find_source_format(source).stream_parser](source, writer_schemas)
