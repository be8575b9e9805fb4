"""Reads files of each format as rows, and turns a row into the JSON that a topic would hold."""

from typing import TYPE_CHECKING

from penstock.engine.definition.predicates import quote_column
from penstock.engine.errors import BoundedInputError
from penstock.engine.plan.sources import Column, FileFormat, PlanSource
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.archive_source import ArchiveSource, is_archive_table
from penstock.engine.spark.bounded_sources.file_source import FileSource
from penstock.engine.spark.parse.wire_columns import json_type, wire_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORRUPT_COLUMN = "_corrupt"
TEXT_FIELD = "text"
"""The field of a record that holds a line of text, as in records from a socket."""


def open_file_source(
    session: "SparkSession", source: PlanSource, path: str, file_format: FileFormat
) -> BoundedSource:
    """Open the records of a source in files: lines of JSON or text, or rows whose columns are named as the fields.

    Raises BoundedInputError when there are no files of that format, or no column for the event time.
    """
    rows = read_files(session, source, path, file_format)
    if file_format == "json":
        return FileSource(rows, source, "value")
    if file_format == "text":
        return FileSource(rows, source, text_line_json_sql(source, path))
    if is_archive_table(rows):
        return ArchiveSource(rows, source.name)
    if source.event_time not in rows.columns:
        columns = ", ".join(name for name in rows.columns if name != CORRUPT_COLUMN)
        fix = f"Name the column with read(..., event_time='...'). Available columns: {columns}"
        raise BoundedInputError(
            f"{file_format} files at {path}", f"no column {source.event_time!r} for the event time", fix
        )
    return FileSource(rows, source, row_json_sql(rows, source, file_format))


def read_files(
    session: "SparkSession", source: PlanSource, path: str, file_format: FileFormat
) -> "DataFrame":
    """Return the rows of files."""
    from pyspark.errors import AnalysisException

    try:
        match file_format:
            case "json" | "text":
                return session.read.text(path)
            case "csv":
                return read_csv(session, source, path)
            case "parquet" | "delta":
                return session.read.format(file_format).load(path)
    except AnalysisException as problem:
        fix = "Name a folder or a file with records in that format"
        raise BoundedInputError(
            f"{file_format} files at {path}", str(problem).splitlines()[0], fix
        ) from problem


def read_csv(session: "SparkSession", source: PlanSource, path: str) -> "DataFrame":
    """Return the rows of files whose first line names the columns; columns unknown to the source are text."""
    types = {column.name: json_type(column) for column in source.columns}
    header_columns = session.read.option("header", True).csv(path).columns
    schema = ", ".join(f"{quote_column(name)} {types.get(name, 'STRING')}" for name in header_columns)
    reader = session.read.schema(f"{schema}, {CORRUPT_COLUMN} STRING").option(
        "columnNameOfCorruptRecord", CORRUPT_COLUMN
    )
    return reader.option("header", True).option("enforceSchema", False).csv(path)


def row_json_sql(rows: "DataFrame", source: PlanSource, file_format: FileFormat) -> str:
    """Return the SQL of a row's JSON; for a malformed line of CSV, of the line itself."""
    columns = {column.name: column for column in source.columns}
    fields = ", ".join(
        field_json_sql(name, column_type, columns.get(name))
        for name, column_type in dict(rows.dtypes).items()
        if name != CORRUPT_COLUMN
    )
    json_sql = f"to_json(struct({fields}))"
    return f"coalesce({CORRUPT_COLUMN}, {json_sql})" if file_format == "csv" else json_sql


def text_line_json_sql(source: PlanSource, path: str) -> str:
    """Return the SQL of a line's JSON; its event time is the modification time of its file."""
    if TEXT_FIELD not in {column.name for column in source.columns}:
        fields = ", ".join(column.name for column in source.columns)
        fix = f"Read a topic whose records have that field. Fields of {source.name}: {fields}"
        raise BoundedInputError(f"text files at {path}", f"{source.name} has no field {TEXT_FIELD!r}", fix)
    time_column = next(column for column in source.columns if column.name == source.event_time)
    time_sql = wire_sql(time_column, "unix_millis(_metadata.file_modification_time)")
    time = f"{time_sql} AS {quote_column(source.event_time)}"
    return f"to_json(struct({time}, value AS {TEXT_FIELD}))"


def field_json_sql(name: str, column_type: str, column: Column | None) -> str:
    """Return the SQL of a field: a timestamp is written in the format of its column, or in milliseconds."""
    if column_type != "timestamp":
        return quote_column(name)
    milliseconds = f"unix_millis({quote_column(name)})"
    return f"{milliseconds if column is None else wire_sql(column, milliseconds)} AS {quote_column(name)}"
