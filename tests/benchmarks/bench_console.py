"""Measures the console with simulated streams that commit a batch each second: first paint, and share of a core.

`python -m tests.benchmarks.bench_console [STREAMS]`. The first paint is that of a headless Chromium.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
from tests.browser import launch_chromium

from penstock.core.clock import now_ms
from penstock.core.waiting import wait_until
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.infra.ports import accepts_connections, find_free_ports
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore, open_control_store

MEASURED_S = 30.0
SETTLE_S = 3.0
PAINTS, PAUSE_S = 9, 1.5
"""A pause is longer than viewers share a reading, so that each page reads the stack anew."""


def commit_batches(store: ControlStore, streams: Sequence[str], stop: threading.Event) -> None:
    """Let each stream commit a batch each second."""
    number = 0
    while not stop.is_set():
        committed_at_ms = now_ms()
        for stream in streams:
            accounts = tuple(
                PartitionAccount("sensors", partition, 0, 100, 100, 97, 2, 1, 0) for partition in range(3)
            )
            record = BatchRecord(
                *(stream, number, 1, "data", committed_at_ms, committed_at_ms - 10_000, accounts),
                rows=12,
                durations_ms={"process": 100.0},
                result_rows={f"latest/{stream}": 12},
                committed_at_ms=committed_at_ms,
            )
            store.record_batch(record)
        number += 1
        stop.wait(1)


def start_streams(store: ControlStore, streams: Sequence[str]) -> None:
    """Give each stream a host that lives for longer than the measurement."""
    for stream in streams:
        store.set_desired_state(stream, DesiredRunState.RUNNING, now_ms())
        lease = store.acquire_lease(stream, "simulated", now_ms(), 600_000)
        assert lease is not None
        store.report_health(StreamHealth(stream, StreamState.RUNNING, "", now_ms(), lease.epoch))


def measure_share(process: psutil.Process) -> float:
    """Return the share of a core that a process takes, in percent."""
    before = process.cpu_times()
    time.sleep(MEASURED_S)
    after = process.cpu_times()
    return 100 * (after.user + after.system - before.user - before.system) / MEASURED_S


@contextmanager
def follow_page(url: str) -> Iterator[None]:
    """Keep a page open, as a browser does."""
    viewer = subprocess.Popen(
        ["curl", "--silent", "--no-buffer", "--header", "Accept: text/event-stream", url],
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        viewer.terminate()
        viewer.wait()


def measure_first_paint(url: str) -> list[float]:
    """Return the times from a request to the first paint of its page, in seconds, the longest last."""
    paints = []
    with launch_chromium() as browser:
        for _ in range(PAINTS):
            page = browser.new_page()
            page.goto(url)
            entry = page.wait_for_function("performance.getEntriesByName('first-contentful-paint')[0]")
            paints.append(entry.evaluate("entry => entry.startTime") / 1000)
            page.close()
            time.sleep(PAUSE_S)
    return sorted(paints)


def main(count: int) -> None:
    """Start a console over simulated streams, and print how quick it is and what it takes."""
    names = catalog.pipeline_names()
    streams = [*names[:count], *(f"simulated_{number}" for number in range(count - len(names)))]
    port, broker_port = find_free_ports(2)
    with tempfile.TemporaryDirectory() as home:
        variables = {
            "PENSTOCK_HOME": home,
            "PENSTOCK_CONSOLE__PORT": str(port),
            "PENSTOCK_KAFKA__PORT": str(broker_port),
        }
        with closing(open_control_store(f"sqlite:///{Path(home) / 'control.db'}")) as store:
            start_streams(store, streams)
            stop = threading.Event()
            commits = threading.Thread(target=commit_batches, args=(store, streams, stop))
            commits.start()
            command = [sys.executable, "-m", "penstock.platform.cli", "console"]
            console = subprocess.Popen(command, env={**os.environ, **variables})
            try:
                wait_until(lambda: accepts_connections("127.0.0.1", port), 60, "the console to listen")
                process, url = psutil.Process(console.pid), f"http://127.0.0.1:{port}"
                paints = measure_first_paint(url)
                median, longest = paints[len(paints) // 2], paints[-1]
                print(f"first paint of the overview: median {median:.2f} s, longest {longest:.2f} s")
                print(f"no page open: {measure_share(process):.1f} % of a core")
                for name, path in (("overview", "/"), ("stream", f"/streams/{streams[0]}")):
                    with follow_page(url + path):
                        print(f"{name} open: {measure_share(process):.1f} % of a core")
            finally:
                console.terminate()
                console.wait()
                stop.set()
                commits.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("streams", nargs="?", type=int, default=20)
    main(parser.parse_args().streams)
