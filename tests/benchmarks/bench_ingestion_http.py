"""Measures the records per second of one HTTP worker on one core.

Requests are NDJSON batches, and the worker answers after the broker has acknowledged them. It checks every record
and delivers with a ledger. `python tests/benchmarks/bench_ingestion_http.py [REQUESTS] [ROUNDS]`.
"""

import argparse
import http.client
import os
import statistics
import tempfile
import threading
import time
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console
from rich.table import Table

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import json_codec, load_contract
from penstock.ingestion.feed import Feed
from penstock.ingestion.generators import SensorGenerator, make_even_send_times
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources.http_push import HttpPushSource
from penstock.ingestion.topics import ensure_topics

ROOT = Path(__file__).parents[2]
LINES_PER_REQUEST, SENDER_COUNT, MIN_RECORDS_PER_SECOND = 500, 6, 20_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def run_worker(bootstrap: str, ledger: Path, pipe: Connection) -> None:
    """Run the worker: send its port, then its CPU seconds whenever the pipe asks."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    contract = load_contract("sensors")
    source = HttpPushSource("127.0.0.1", 0, create_record_format(contract).checker)
    stop = threading.Event()
    feed = Feed(source, contract, bootstrap, ledger, now_ms)
    thread = threading.Thread(target=feed.run, args=(stop,))
    thread.start()
    while not source.is_serving:
        time.sleep(0.01)
    pipe.send(source.port)
    while pipe.recv():
        pipe.send(time.process_time())
    stop.set()
    thread.join()


def send_requests(port: int, body: bytes, requests: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(requests):
        connection.request("POST", "/", body, {"Content-Type": "application/x-ndjson"})
        response = connection.getresponse()
        response.read()
        if response.status != http.client.OK:
            raise RuntimeError(f"the worker answered {response.status}, not 200")


def measure_round(port: int, body: bytes, requests: int, pipe: Connection) -> tuple[float, float]:
    """Return the records per second of wall-clock time and of the worker's CPU time."""
    pipe.send(True)
    cpu_before_s, started_at = pipe.recv(), time.perf_counter()
    senders = [
        threading.Thread(target=send_requests, args=(port, body, requests // SENDER_COUNT))
        for _ in range(SENDER_COUNT)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    elapsed_s = time.perf_counter() - started_at
    pipe.send(True)
    records = requests // SENDER_COUNT * SENDER_COUNT * LINES_PER_REQUEST
    return records / elapsed_s, records / (pipe.recv() - cpu_before_s)


def measure_rounds(requests: int, rounds: int) -> list[tuple[float, float]]:
    contract = load_contract("sensors")
    records = islice(
        SensorGenerator(1).generate_records(0, make_even_send_times(now_ms(), 1_000)), LINES_PER_REQUEST
    )
    body = b"\n".join(map(json_codec(contract).encode, records))
    jars = ensure_jars(ROOT / ".penstock" / "jars", ["kafka"])
    context = get_context("spawn")
    pipe, worker_pipe = context.Pipe()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker.in_directory(Path(folder) / "broker", jars, heap_mb=512) as broker,
    ):
        ensure_topics(broker.bootstrap, [contract])
        worker = context.Process(
            target=run_worker, args=(broker.bootstrap, Path(folder) / "push", worker_pipe)
        )
        worker.start()
        port = pipe.recv()
        measure_round(port, body, requests // 4, pipe)
        rates = [measure_round(port, body, requests, pipe) for _ in range(rounds)]
        pipe.send(False)
        worker.join()
    return rates


def main(requests: int, rounds: int) -> None:
    """Measure, and print the rates."""
    measured = measure_rounds(requests, rounds)
    table = Table(
        title=f"{LINES_PER_REQUEST} records per request, {SENDER_COUNT} senders, {rounds} rounds",
        title_justify="left",
    )
    for column in ("records/s", "median", "min", "max", "required"):
        table.add_column(column, justify="right")
    for name, rates in zip(("of wall-clock time", "of CPU time"), zip(*measured, strict=True), strict=True):
        figures = (statistics.median(rates), min(rates), max(rates), MIN_RECORDS_PER_SECOND)
        table.add_row(name, *(f"{figure:,.0f}" for figure in figures))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "requests", nargs="?", type=int, default=300, help="requests per round (default: %(default)s)"
    )
    parser.add_argument(
        "rounds", nargs="?", type=int, default=5, help="measured rounds (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.requests, arguments.rounds)
