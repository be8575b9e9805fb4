"""Times the first and the warm answer of `penstock sql`, and of other engines over the same table.

`python -m tests.benchmarks.bench_platform_sql [ROWS]`. A first answer includes the start of the interpreter. The
least of a few attempts is printed, with its CPU time: on a busy machine, only that is comparable.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table

from penstock.query.sql_query import run_query

FILES, KEYS, ATTEMPTS, WARM_ATTEMPTS = 20, 1_000, 5, 20
QUERY = (
    "SELECT device, max(temperature) AS warmest FROM sensor_minute GROUP BY device ORDER BY 2 DESC LIMIT 3"
)
OPEN_TABLE = "import sys; from deltalake import DeltaTable; table = DeltaTable(sys.argv[1])"
SNIPPETS = {
    "DataFusion of delta-rs": f"""
from deltalake import QueryBuilder
QueryBuilder().register("sensor_minute", table).execute("{QUERY}").read_all()
""",
    "DuckDB over Parquet files": f"""
import duckdb
duckdb.read_parquet(table.file_uris()).query("sensor_minute", "{QUERY}").fetchall()
""",
    "DuckDB over Arrow datasets": f"""
import duckdb
connection = duckdb.connect()
connection.register("sensor_minute", table.to_pyarrow_dataset())
connection.sql("{QUERY}").fetchall()
""",
}


def list_programs(path: Path) -> dict[str, list[str]]:
    """Return the arguments of Python for each engine."""
    return {
        "penstock sql": ["-m", "penstock.platform.cli", "sql", QUERY],
        **{name: ["-c", OPEN_TABLE + snippet, str(path)] for name, snippet in SNIPPETS.items()},
    }


def write_table(folder: Path, rows: int) -> Path:
    """Write a table of current rows in several files."""
    path = folder / "warehouse/latest/sensor_minute"
    start_us = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    numbers = np.arange(rows)
    content = pa.table(
        {
            "device": pa.array([f"device-{number % KEYS}" for number in range(rows)]),
            "temperature": np.random.default_rng(1).random(rows),
            "window_start": pa.array(start_us + numbers // KEYS * 60_000_000).cast(pa.timestamp("us", "UTC")),
        }
    )
    for file in range(FILES):
        write_deltalake(path, content.slice(rows * file // FILES, rows // FILES), mode="append")
    return path


def time_program(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a program; return the seconds that it took, and those of the processor."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, cpu_s


def main(rows: int) -> None:
    """Print a table of the first answers, and the warm answer."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_table(Path(folder), rows)
        table = Table("engine", "first answer", "CPU time", title=f"{rows:,} rows in {FILES} files")
        for name, arguments in list_programs(path).items():
            environment = {**os.environ, "PENSTOCK_HOME": folder}
            attempts = [time_program(arguments, environment) for _ in range(ATTEMPTS)]
            wall_s, cpu_s = (min(values) for values in zip(*attempts, strict=True))
            table.add_row(name, f"{wall_s:.2f} s", f"{cpu_s:.2f} s")
        warm_s = []
        for _ in range(WARM_ATTEMPTS):
            started = time.perf_counter()
            run_query(Path(folder) / "warehouse", QUERY).read_all()
            warm_s.append(time.perf_counter() - started)
    console = Console()
    console.print(table)
    console.print(
        f"penstock.query, warm: {min(warm_s) * 1000:.0f} ms (median {np.median(warm_s) * 1000:.0f} ms)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rows", nargs="?", type=int, default=1_000_000, help="rows of the table (default: %(default)s)"
    )
    main(parser.parse_args().rows)
