"""A feed in a process of its own, to be killed: broker, ledger folder, topic, end, rate (0: none), seed."""

import dataclasses
import signal
import sys
import time
from pathlib import Path
from threading import Event

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.feed import Feed, Limits
from penstock.ingestion.generators import Sensors
from penstock.ingestion.producer import Window
from penstock.ingestion.sources import Generated


def main(bootstrap: str, ledger: str, topic: str, until: str, rate: str, seed: str) -> None:
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    contract = dataclasses.replace(load_contract("sensors"), topic=topic)

    def clock() -> int:
        return time.time_ns() // 1_000_000

    source = Generated(Sensors(int(seed)), contract, clock, rate=float(rate) or None)
    window = Window(records=5_000, chunk_records=500)
    feed = Feed(source, contract, bootstrap, Path(ledger), clock, window=window)
    summary = feed.run(stop, limits=Limits(until=int(until), finish_ms=2_000))
    print(summary.reached, summary.complete, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
