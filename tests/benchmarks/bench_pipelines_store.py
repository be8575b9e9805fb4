"""Counts the requests of a batch to a table in an object store.

`python -m tests.benchmarks.bench_pipelines_store [BATCHES]`. The times are those of a simulated local store, and do
not apply to a remote one.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from tests.object_store import TEST_BUCKET, run_object_store

from penstock.engine.storage import ObjectStorePath
from penstock.engine.tables.log_table import LogTable

TABLE_SCHEMA = pa.schema([("n", pa.int64())])


def main(batches: int) -> None:
    """Commit batches, and print the requests of each kind."""
    os.environ.update(
        AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench", AWS_EC2_METADATA_DISABLED="true"
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests"
        with log.open("w") as file, run_object_store(file) as store:
            table = LogTable(ObjectStorePath(f"s3://{TEST_BUCKET}/log", store), TABLE_SCHEMA, "bench")
            previous_log, started = log.read_text("utf-8"), time.perf_counter()
            for number in range(batches):
                table.commit(number, table.write(pa.table({"n": [1]}, TABLE_SCHEMA), number, number), number)
            batch_ms = (time.perf_counter() - started) * 1000 / batches
        request_log = log.read_text("utf-8").removeprefix(previous_log)
    counts = {kind: request_log.count(f"{kind} /") / batches for kind in ("GET", "HEAD", "PUT")}
    kinds = ", ".join(f"{count:.1f} {kind}" for kind, count in counts.items())
    Console().print(
        f"a batch of one row: {sum(counts.values()):.1f} requests ({kinds}), {batch_ms:.0f} ms locally"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "batches", nargs="?", type=int, default=100, help="batches to commit (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.batches)
