"""A shipped pipeline over records that are stored in a file, to their end, and DuckDB beside it."""

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
from penstock.engine.plan import FileOrigin
from penstock.engine.plan.sources import FileFormat
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.ingestion.generators import GENERATORS, make_even_send_times
from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGAN = 1_700_000_000_000
Record = dict[str, Any]


def generated(topic: str, count: int, per_second: float, seed: int = 1) -> list[Record]:
    """Records of a generator."""
    made = islice(GENERATORS[topic](seed).generate_records(0, make_even_send_times(BEGAN, per_second)), count)
    return [msgspec.to_builtins(record) for record in made]


def left(session: "SparkSession", name: str, records: Iterable[Record], folder: Path, table: str) -> pa.Table:
    """What a pipeline leaves in a table of records that are stored in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return left_of(session, name, path, "json", folder, table)


def left_of(
    session: "SparkSession", name: str, path: Path, form: FileFormat, folder: Path, table: str
) -> pa.Table:
    """What it leaves of what is in files of a format."""
    plan = catalog.load_plan(name)
    (source,) = plan.sources
    plan = replace(plan, sources=(replace(source, origin=FileOrigin(str(path), form)),))
    stored = open_file_source(session, plan.sources[0], str(path), form)
    run_bounded(plan, session, stored, BoundedRunConfig(folder / "run", folder / "tables"), lambda: BEGAN)
    return pa.table(DeltaTable(folder / "tables" / table).to_pyarrow_table())


def asked(sql: str, **tables: Any) -> list[tuple[Any, ...]]:
    """What DuckDB answers; records become tables, with their place in the file as `nth`."""
    with duckdb.connect() as connection:
        for name, content in tables.items():
            if isinstance(content, list):
                content = pa.Table.from_pylist(content)
                content = content.append_column("nth", pa.array(range(content.num_rows)))
            connection.register(name, content)
        return connection.sql(sql).fetchall()
