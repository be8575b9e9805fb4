"""Runs a shipped pipeline over stored records to their end, and queries tables in DuckDB."""

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pyarrow as pa
from deltalake import DeltaTable

from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import FileFormat, FileOrigin
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.ingestion.generators import GENERATORS, make_even_send_times
from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_MS = 1_700_000_000_000
Record = dict[str, Any]


def generate_records(topic: str, count: int, per_second: float, seed: int = 1) -> list[Record]:
    """Return the first records of a generator."""
    records = islice(
        GENERATORS[topic](seed).generate_records(0, make_even_send_times(START_MS, per_second)), count
    )
    return [msgspec.to_builtins(record) for record in records]


def run_on_records(
    session: "SparkSession", name: str, records: Iterable[Record], folder: Path, table: str
) -> pa.Table:
    """Run a pipeline over records that are written to a file first; return one of its tables."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return run_on_files(session, name, path, "json", folder, table)


def run_on_files(
    session: "SparkSession", name: str, path: Path, form: FileFormat, folder: Path, table: str
) -> pa.Table:
    """Run a pipeline over files of a format; return one of its tables."""
    plan = catalog.load_plan(name)
    (source,) = plan.sources
    plan = replace(plan, sources=(replace(source, origin=FileOrigin(str(path), form)),))
    stored = open_file_source(session, plan.sources[0], str(path), form)
    run_bounded(plan, session, stored, BoundedRunConfig(folder / "run", folder / "tables"), lambda: START_MS)
    return pa.table(DeltaTable(folder / "tables" / table).to_pyarrow_table())


def query_duckdb(sql: str, **tables: Any) -> list[tuple[Any, ...]]:
    """Query tables in DuckDB; lists of records become tables with their position as `nth`."""
    with duckdb.connect() as connection:
        for name, content in tables.items():
            if isinstance(content, list):
                content = pa.Table.from_pylist(content)
                content = content.append_column("nth", pa.array(range(content.num_rows)))
            connection.register(name, content)
        return connection.sql(sql).fetchall()
