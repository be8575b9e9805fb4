"""A feed in a process of its own, to be killed: broker, ledger folder, topic, end, rate (0: none), seed, file.

With a file its lines are sent at the rate; without, readings are made up.
"""

import dataclasses
import signal
import sys
import time
from pathlib import Path
from threading import Event

from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.feed import Feed, Limits
from penstock.ingestion.generators import Sensors
from penstock.ingestion.producer import Window, format_of
from penstock.ingestion.sources import Generated, Source
from penstock.ingestion.sources.opening import SourceOptions, open_source
from penstock.ingestion.sources.replay import Pace


def clock() -> int:
    return time.time_ns() // 1_000_000


def source_of(contract: Contract, rate: float | None, seed: int, file: str) -> Source:
    if not file:
        return Generated(Sensors(seed), contract, clock, rate=rate)
    return open_source(
        "json-lines", contract, format_of(contract), clock, SourceOptions(place=file, pace=Pace(rate=rate))
    )


def main(bootstrap: str, ledger: str, topic: str, until: str, rate: str, seed: str, file: str = "") -> None:
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    contract = dataclasses.replace(load_contract("sensors"), topic=topic)
    source = source_of(contract, float(rate) or None, int(seed), file)
    window = Window(records=5_000, chunk_records=500)
    feed = Feed(source, contract, bootstrap, Path(ledger), clock, window=window)
    summary = feed.run(stop, limits=Limits(until=int(until), finish_ms=2_000))
    print(summary.reached, summary.complete, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
