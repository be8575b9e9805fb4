"""Measures the size and the opening time of delivery ledgers with millions of records, for busy and slow feeds.

`python tests/benchmarks/bench_ingestion_ledger.py [RECORDS]`.
"""

import argparse
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from penstock.ingestion.ledger import DeliveryLedger, read_addresses

TARGET_PARTITIONS = [("t", 0), ("t", 1), ("t", 2), ("t.dead-letters", 0)]


def write_ledger(directory: Path, records: int, chunk: int) -> None:
    """Write a ledger in batches of records; sync it rarely, because the disk is not measured."""
    ledger = DeliveryLedger(directory, lambda: 1_800_000_000_000)
    ledger.start_session(TARGET_PARTITIONS, [-1] * 4, "a benchmark", "key")
    acknowledged: list[tuple[int, list[int], dict[int, list[tuple[int, int]]]]] = []
    next_offsets = [0, 0, 0]
    for first in range(0, records, chunk):
        ledger.record_intent(first, chunk, {"next": first, "count": chunk, "now": 1_800_000_000_000 + first})
        partitions = [(first + position) * 7 % 3 for position in range(chunk)]
        runs = {}
        for partition in set(partitions):
            runs[partition] = [(next_offsets[partition], partitions.count(partition))]
            next_offsets[partition] += partitions.count(partition)
        acknowledged.append((first, partitions, runs))
        if len(acknowledged) == 1_000:
            ledger.record_acknowledgements(acknowledged)
            acknowledged = []
    ledger.record_acknowledgements(acknowledged)
    ledger.close(clean=True)


def time_opening(directory: Path) -> float:
    """Return the milliseconds until a ledger is open for writing."""
    started_at = time.perf_counter()
    ledger = DeliveryLedger(directory, lambda: 0)
    elapsed_s = time.perf_counter() - started_at
    ledger.close(clean=False)
    return elapsed_s * 1_000


def measure_read_rate(directory: Path, records: int) -> float:
    """Return the number of addresses read per second."""
    started_at = time.perf_counter()
    assert sum(1 for _ in read_addresses(directory)) == records
    return records / (time.perf_counter() - started_at)


def main(records: int) -> None:
    """Measure ledgers of three batch sizes, and print a row for each."""
    table = Table(title="delivery ledgers", title_justify="left")
    for column in ("records", "batch size", "bytes/record", "files", "opening time, ms", "addresses/s"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for number, chunk in ((records * 10, 10_000), (records, 100), (records // 3, 1)):
            directory = Path(folder) / str(chunk)
            write_ledger(directory, number, chunk)
            files = [path for path in directory.iterdir() if path.suffix == ".ledger"]
            size = sum(path.stat().st_size for path in files)
            figures = (
                f"{size / number:.2f}",
                f"{len(files)}",
                f"{time_opening(directory):.0f}",
                f"{measure_read_rate(directory, number):,.0f}",
            )
            table.add_row(f"{number:,}", f"{chunk:,}", *figures)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "records",
        nargs="?",
        type=int,
        default=3_000_000,
        help="records of the second ledger (default: %(default)s); the first has ten times as many",
    )
    arguments = parser.parse_args()
    main(arguments.records)
