"""How large a ledger becomes and how long it takes to open: a busy feed's and a slow one's, of millions of records.

`python tests/benchmarks/bench_ingestion_ledger.py [records]`.
"""

import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from penstock.ingestion.ledger import DeliveryLedger, read_addresses

TARGET_PARTITIONS = [("t", 0), ("t", 1), ("t", 2), ("t.dead-letters", 0)]


def write_ledger(directory: Path, records: int, chunk: int) -> None:
    """Write a ledger in batches of records; rarely synced, because the disk is not measured."""
    ledger = DeliveryLedger(directory, lambda: 1_800_000_000_000)
    ledger.start_session(TARGET_PARTITIONS, [-1] * 4, "a benchmark", "key")
    done: list[tuple[int, list[int], dict[int, list[tuple[int, int]]]]] = []
    following = [0, 0, 0]
    for first in range(0, records, chunk):
        ledger.record_intent(first, chunk, {"next": first, "count": chunk, "now": 1_800_000_000_000 + first})
        lanes = [(first + place) * 7 % 3 for place in range(chunk)]
        runs = {}
        for lane in set(lanes):
            runs[lane] = [(following[lane], lanes.count(lane))]
            following[lane] += lanes.count(lane)
        done.append((first, lanes, runs))
        if len(done) == 1_000:
            ledger.record_acknowledgements(done)
            done = []
    ledger.record_acknowledgements(done)
    ledger.close(clean=True)


def time_opening(directory: Path) -> float:
    """Return the milliseconds until a ledger can be written."""
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


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    table = Table(title="ledgers", title_justify="left")
    for column in ("records", "at a time", "bytes a record", "files", "opened in ms", "addresses/s"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for number, chunk in ((records * 10, 10_000), (records, 100), (records // 3, 1)):
            place = Path(folder) / str(chunk)
            write_ledger(place, number, chunk)
            files = [path for path in place.iterdir() if path.suffix == ".ledger"]
            size = sum(path.stat().st_size for path in files)
            shares = f"{size / number:.2f}", f"{len(files)}"
            figures = *shares, f"{time_opening(place):.0f}", f"{measure_read_rate(place, number):,.0f}"
            table.add_row(f"{number:,}", f"{chunk:,}", *figures)
    Console().print(table)


if __name__ == "__main__":
    main()
