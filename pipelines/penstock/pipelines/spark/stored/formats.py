"""Files of each format as rows, and a row as the JSON that a topic would hold of it."""

from typing import TYPE_CHECKING

from penstock.pipelines.errors import StoredError
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.plan.source import FileFormat, Source
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.spark.stored.archive import StoredArchive, is_archive
from penstock.pipelines.spark.stored.files import StoredFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BROKEN = "_broken"
TEXT = "text"
"""The field of a record that holds a line of text, here as where lines come over a socket."""


def stored_files(session: "SparkSession", source: Source, path: str, form: FileFormat) -> Stored:
    """Records of a source in files: a JSON object or text a line, or rows with columns of the fields' names.

    Raises StoredError where there is nothing of that format, or no column of that name for the event time.
    """
    rows = opened(session, source, path, form)
    if form == "json":
        return StoredFiles(rows, source, "value")
    if form == "text":
        return StoredFiles(rows, source, line_of(source, path))
    if is_archive(rows):
        return StoredArchive(rows, source.name)
    if source.event_time not in rows.columns:
        found = ", ".join(name for name in rows.columns if name != BROKEN)
        fix = f"Name the column with read(..., event_time='...'); there are {found}"
        raise StoredError(
            f"{form} files at {path}", f"no column {source.event_time!r} for the event time", fix
        )
    return StoredFiles(rows, source, value_of(rows, form))


def opened(session: "SparkSession", source: Source, path: str, form: FileFormat) -> "DataFrame":
    """Return the rows of files."""
    from pyspark.errors import AnalysisException

    try:
        match form:
            case "json" | "text":
                return session.read.text(path)
            case "csv":
                return csv_rows(session, source, path)
            case "parquet" | "delta":
                return session.read.format(form).load(path)
    except AnalysisException as problem:
        fix = "Name a folder or file that holds records in that format"
        raise StoredError(f"{form} files at {path}", str(problem).splitlines()[0], fix) from problem


def csv_rows(session: "SparkSession", source: Source, path: str) -> "DataFrame":
    """Return the rows of files whose first line names the columns; what the source does not know is text."""
    types = {column.name: column.type for column in source.columns}
    named = session.read.option("header", True).csv(path).columns
    schema = ", ".join(f"{quoted(name)} {types.get(name, 'STRING')}" for name in named)
    reader = session.read.schema(f"{schema}, {BROKEN} STRING").option("columnNameOfCorruptRecord", BROKEN)
    return reader.option("header", True).option("enforceSchema", False).csv(path)


def value_of(rows: "DataFrame", form: FileFormat) -> str:
    """Return the SQL of a row's JSON; of a line that could not be read, the line as it stands."""
    fields = ", ".join(field(name, kind) for name, kind in dict(rows.dtypes).items() if name != BROKEN)
    written = f"to_json(struct({fields}))"
    return f"coalesce({BROKEN}, {written})" if form == "csv" else written


def line_of(source: Source, path: str) -> str:
    """Return the SQL of a line's JSON; its time is that of its file, when it was last changed, for it says none."""
    if TEXT not in {column.name for column in source.columns}:
        fix = f"Read a topic whose records have one: {', '.join(column.name for column in source.columns)} are here"
        raise StoredError(f"text files at {path}", f"{source.name} has no field {TEXT!r}", fix)
    time = f"unix_millis(_metadata.file_modification_time) AS {quoted(source.event_time)}"
    return f"to_json(struct({time}, value AS {TEXT}))"


def field(name: str, kind: str) -> str:
    """Return the SQL of a field: an instant is milliseconds, as in every encoding of a record."""
    return f"unix_millis({quoted(name)}) AS {quoted(name)}" if kind == "timestamp" else quoted(name)
