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
from tests.object_store import BUCKET, running_store

from penstock.pipelines.store import Address
from penstock.pipelines.tables.log import LogTable

SCHEMA = pa.schema([("n", pa.int64())])


def main(batches: int = 100) -> None:
    """Count, and print."""
    os.environ.update(
        AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench", AWS_EC2_METADATA_DISABLED="true"
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests"
        with log.open("w") as file, running_store(file) as store:
            table = LogTable(Address(f"s3://{BUCKET}/log", store), SCHEMA, "bench")
            before, began = log.read_text("utf-8"), time.perf_counter()
            for number in range(batches):
                table.commit(number, table.write(pa.table({"n": [1]}, SCHEMA), number, number), number)
            took = (time.perf_counter() - began) * 1000 / batches
        asked = log.read_text("utf-8").removeprefix(before)
    told = {kind: asked.count(f"{kind} /") / batches for kind in ("GET", "HEAD", "PUT")}
    kinds = ", ".join(f"{count:.1f} {kind}" for kind, count in told.items())
    Console().print(f"a batch of one row: {sum(told.values()):.1f} requests ({kinds}), {took:.0f} ms here")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
