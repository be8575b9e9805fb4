"""What a batch costs a table in an object store, in requests: they take time there, and are paid for.

`python -m tests.benchmarks.bench_pipelines_store [batches]`; nothing needs to run for it. Times are those of a
stand-in on this machine, and say nothing of a store that is far away.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from tests.object_store import TEST_BUCKET, run_object_store

from penstock.engine.storage import ObjectStorePath
from penstock.engine.tables.log_table import LogTable

TABLE_SCHEMA = pa.schema([("n", pa.int64())])


def main(batches: int = 100) -> None:
    """Count, and print."""
    os.environ.update(
        AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench", AWS_EC2_METADATA_DISABLED="true"
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests"
        with log.open("w") as file, run_object_store(file) as store:
            table = LogTable(ObjectStorePath(f"s3://{TEST_BUCKET}/log", store), TABLE_SCHEMA, "bench")
            before, began = log.read_text("utf-8"), time.perf_counter()
            for number in range(batches):
                table.commit(number, table.write(pa.table({"n": [1]}, TABLE_SCHEMA), number, number), number)
            took = (time.perf_counter() - began) * 1000 / batches
        asked = log.read_text("utf-8").removeprefix(before)
    told = {kind: asked.count(f"{kind} /") / batches for kind in ("GET", "HEAD", "PUT")}
    kinds = ", ".join(f"{count:.1f} {kind}" for kind, count in told.items())
    Console().print(f"a batch of one row: {sum(told.values()):.1f} requests ({kinds}), {took:.0f} ms here")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
