"""Run a feed in its own process, so that tests can kill it.

Arguments: broker, ledger folder, topic, last sequence, rate (0: unlimited), seed, and a file to send; without a
file, sensor readings are generated.
"""

import dataclasses
import signal
import sys
import time
from pathlib import Path
from threading import Event

from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.producer import InFlightWindow, create_record_format
from penstock.ingestion.sources import GeneratorSource, RecordSource
from penstock.ingestion.sources.source_discovery import open_source


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def create_source(contract: Contract, rate: float | None, seed: int, file: str) -> RecordSource:
    if not file:
        return GeneratorSource(SensorGenerator(seed), contract, now_ms, rate=rate)
    return open_source(
        "json-lines",
        contract,
        create_record_format(contract),
        now_ms,
        {"path": file} | ({"rate": rate} if rate else {}),
    )


def main(bootstrap: str, ledger: str, topic: str, until: str, rate: str, seed: str, file: str = "") -> None:
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    contract = dataclasses.replace(load_contract("sensors"), topic=topic)
    source = create_source(contract, float(rate) or None, int(seed), file)
    window = InFlightWindow(max_records=5_000, max_chunk_records=500)
    feed = Feed(source, contract, bootstrap, Path(ledger), now_ms, in_flight_window=window)
    summary = feed.run(stop, limits=FeedLimits(until=int(until), finish_ms=2_000))
    print(summary.acknowledged_until, summary.complete, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
