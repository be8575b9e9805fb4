"""Measures how long requests of stream states take while records flow.

    python -m tests.benchmarks.bench_lifecycle [rounds]

A whole stack is started for it. A time is from the request to the report of the host.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

from penstock.infra.jars import ensure_jars
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, request_state, wait_for_state

STREAM_NAME = "sensor_minute"
VERB_SEQUENCE = ("drain", "start", "pause", "resume", "restart", "stop", "start")
MAX_SECONDS = {"start": "2", "drain": "3 and the batch"}


def time_verb(store: ControlStore, word: str) -> float:
    """Return the seconds from a request to its state."""
    began = time.perf_counter()
    wait_for_state(store, request_state(store, STREAM_NAME, STREAM_COMMANDS[word], (STREAM_NAME,)), 60)
    return time.perf_counter() - began


def main(rounds: int = 10) -> None:
    """Measure and print."""
    jars = Path(".penstock/jars").resolve()
    ensure_jars(jars)
    found: dict[str, list[float]] = {word: [] for word in STREAM_COMMANDS}
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch) / "home", jars)
        with stack.stopped_on_exit():
            stack.up()
            store = open_control_store(stack.control_url)
            for _ in range(rounds):
                for word in VERB_SEQUENCE:
                    batch = stack.batch()
                    found[word].append(time_verb(store, word))
                    if STREAM_COMMANDS[word].desired == "running":
                        poll_until(lambda: stack.batch() > batch, 30, "a batch")  # noqa: B023  used before the next
            store.close()
    table = Table("verb", "p50 s", "longest s", "at most")
    for word, times in found.items():
        table.add_row(word, f"{statistics.median(times):.2f}", f"{max(times):.2f}", MAX_SECONDS.get(word, ""))
    Console().print(table)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
