"""Writes the answer of a query: as a table, CSV, JSON, JSON lines or Parquet."""

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import click

from penstock.core.files import atomic_path
from penstock.platform.cli.output import print_table, to_json_value
from penstock.platform.cli.row_table import format_cell
from penstock.platform.errors import PlatformError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.query.sql_query import QueryAnswer

AnswerFormat: TypeAlias = Literal["table", "csv", "json", "jsonl", "parquet"]
FORMATS: tuple[AnswerFormat, ...] = get_args(AnswerFormat)
ENDINGS: dict[str, AnswerFormat] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


class OutputFileError(PlatformError):
    """An answer cannot be written to that file."""

    exit_code = 2


def choose_format(name: str | None, output: Path | None) -> AnswerFormat:
    """Return the format of an answer. Raises OutputFileError if the ending of a file names none."""
    if name is not None:
        return next(each for each in FORMATS if each == name)
    if output is None:
        return "table"
    if (output_format := ENDINGS.get(output.suffix.lower())) is None:
        raise OutputFileError(
            f"{output}: the ending names no format. Use one of {', '.join(ENDINGS)}, or give --format"
        )
    return output_format


def write_answer(answer: "QueryAnswer", output_format: AnswerFormat, output: Path | None) -> None:
    """Write the rows of an answer to a new file, or to the standard output."""
    if output is None:
        _print_answer(answer, output_format)
    else:
        if output.exists():
            raise OutputFileError(f"{output} exists. Name another file, or remove it first")
        _write_file(answer, output_format, output)
    if answer.is_cut:
        click.secho("There are more rows than the limit; set --limit to see them.", fg="yellow", err=True)


def _print_answer(answer: "QueryAnswer", output_format: AnswerFormat) -> None:
    if output_format == "parquet":
        if sys.stdout.isatty():
            raise OutputFileError("Parquet is not for a terminal. Name a file with --output")
        _write_parquet(answer, sys.stdout.buffer)
    elif output_format == "table":
        print_answer_table(answer)
    else:
        _write_text(answer, output_format, sys.stdout)


def print_answer_table(answer: "QueryAnswer") -> None:
    """Print an answer as a table, and in a terminal the tables that it comes from."""
    rows = [[format_cell(readable_value(value)) for value in row] for row in iter_rows(answer)]
    print_table(answer.schema.names, rows, empty="no rows")
    if sys.stdout.isatty():
        counted = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
        source = answer.describe_snapshots()
        click.secho(f"{counted}{f' of {source}' if source else ''}", dim=True)


def _write_file(answer: "QueryAnswer", output_format: AnswerFormat, output: Path) -> None:
    try:
        with atomic_path(output) as partial:
            if output_format == "parquet":
                with partial.open("wb") as binary:
                    _write_parquet(answer, binary)
            else:
                with partial.open("w", encoding="utf-8", newline="") as text:
                    _write_text(answer, output_format, text)
    except OSError as error:
        raise OutputFileError(f"{output} cannot be written: {error}") from error


def _write_parquet(answer: "QueryAnswer", file: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, answer.schema, compression="zstd") as writer:
        for batch in answer.batches:
            writer.write_batch(batch)


def _write_text(answer: "QueryAnswer", output_format: AnswerFormat, file: IO[str]) -> None:
    match output_format:
        case "csv":
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(answer.schema.names)
            writer.writerows([_to_text(value) for value in row] for row in iter_rows(answer))
        case "json":
            with _json_array(file) as write_item:
                for row in iter_rows(answer):
                    write_item(_to_json(answer, row))
        case "jsonl":
            file.writelines(f"{_to_json(answer, row)}\n" for row in iter_rows(answer))
        case _:
            for row in (answer.schema.names, *iter_rows(answer)):
                file.write("\t".join(map(_to_text, row)) + "\n")


@contextmanager
def _json_array(file: IO[str]) -> Iterator[Any]:
    """Yield a function that writes the next item of an array."""
    count = 0

    def write_item(text: str) -> None:
        nonlocal count
        file.write(f"{',' if count else '['}\n  {text}")
        count += 1

    yield write_item
    file.write("\n]\n" if count else "[]\n")


def iter_rows(answer: "QueryAnswer") -> Iterator[list[Any]]:
    """Yield the rows of an answer as values of Python."""
    for batch in answer.batches:
        try:
            columns = [column.to_pylist() for column in batch.columns]
        except OverflowError:  # a window that ends after the year 9999
            columns = _list_clamped_columns(batch)
        yield from (list(row) for row in zip(*columns, strict=True))


def _list_clamped_columns(batch: "pa.RecordBatch") -> list[list[Any]]:
    import pyarrow as pa

    from penstock.engine.tables.timestamp_clamping import clamp_timestamps

    return [column.to_pylist() for column in clamp_timestamps(pa.Table.from_batches([batch])).columns]


def readable_value(value: Any) -> Any:
    """Return a value with bytes as text: UTF-8, or else hexadecimal; times in ISO 8601."""
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return f"0x{value.hex()}"
        case dict():
            return {name: readable_value(item) for name, item in value.items()}
        case list() | tuple():
            return [readable_value(item) for item in value]
        case _:
            return value


def _to_json(answer: "QueryAnswer", row: list[Any]) -> str:
    document = dict(zip(answer.schema.names, map(_to_plain, row), strict=True))
    return json.dumps(to_json_value(document), default=str, allow_nan=False, ensure_ascii=False)


def _to_plain(value: Any) -> Any:
    """Return a readable value with times in ISO 8601."""
    match readable_value(value):
        case datetime() | date() | time() as moment:
            return moment.isoformat()
        case dict() as members:
            return {name: _to_plain(item) for name, item in members.items()}
        case list() as items:
            return [_to_plain(item) for item in items]
        case other:
            return other


def _to_text(value: Any) -> str:
    match _to_plain(value):
        case None:
            return ""
        case dict() | list() as nested:
            return json.dumps(to_json_value(nested), default=str, allow_nan=False, ensure_ascii=False)
        case bool() as flag:
            return str(flag).lower()
        case other:
            return str(other)
