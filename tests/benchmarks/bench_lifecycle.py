"""How soon a word about a stream is true, while records flow.

    python -m tests.benchmarks.bench_lifecycle [rounds]

A whole stack is started for it. Times are from the wish's being written to the host's saying that it is so.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.platform.whole.stack import ScratchStack, until

from penstock.infra.jars import ensure_jars
from penstock.platform.control import ControlStore, open_control
from penstock.platform.lifecycle import VERBS, ask, wait_for

STREAM = "sensor_minute"
ORDER = ("drain", "start", "pause", "resume", "restart", "stop", "start")
AT_MOST = {"start": "2", "drain": "3 and the batch"}


def taken(store: ControlStore, word: str) -> float:
    """How long a wish takes to come true."""
    began = time.perf_counter()
    wait_for(store, ask(store, STREAM, VERBS[word], (STREAM,)), 60)
    return time.perf_counter() - began


def main(rounds: int = 10) -> None:
    """Measure and print."""
    jars = Path(".penstock/jars").resolve()
    ensure_jars(jars)
    found: dict[str, list[float]] = {word: [] for word in VERBS}
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch) / "home", jars)
        with stack.ended_at_last():
            stack.up()
            store = open_control(stack.control_url)
            for _ in range(rounds):
                for word in ORDER:
                    batch = stack.batch()
                    found[word].append(taken(store, word))
                    if VERBS[word].desired == "running":
                        until(lambda: stack.batch() > batch, 30, "a batch")  # noqa: B023  used before the next
            store.close()
    table = Table("verb", "p50 s", "longest s", "at most")
    for word, times in found.items():
        table.add_row(word, f"{statistics.median(times):.2f}", f"{max(times):.2f}", AT_MOST.get(word, ""))
    Console().print(table)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
