"""Measures the time from a request for a stream state to the report of the host, while records flow.

The benchmark starts a whole stack. `python -m tests.benchmarks.bench_lifecycle [ROUNDS]`.
"""

import argparse
import statistics
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
COMMAND_SEQUENCE = ("drain", "start", "pause", "resume", "restart", "stop", "start")
REQUIRED_SECONDS = {"start": "2", "drain": "3 + batch"}


def time_command(store: ControlStore, command: str) -> float:
    """Return the seconds until the stream reaches the requested state."""
    started = time.perf_counter()
    wait_for_state(store, request_state(store, STREAM_NAME, STREAM_COMMANDS[command], (STREAM_NAME,)), 60)
    return time.perf_counter() - started


def main(rounds: int) -> None:
    """Measure every command, and print a row for each."""
    jars = Path(".penstock/jars").resolve()
    ensure_jars(jars)
    seconds: dict[str, list[float]] = {command: [] for command in STREAM_COMMANDS}
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch) / "home", jars)
        with stack.stopped_on_exit():
            stack.up()
            store = open_control_store(stack.control_url)
            for _ in range(rounds):
                for command in COMMAND_SEQUENCE:
                    batch = stack.batch()
                    seconds[command].append(time_command(store, command))
                    if STREAM_COMMANDS[command].desired == "running":
                        poll_until(lambda: stack.batch() > batch, 30, "a batch")  # noqa: B023  used before the next
            store.close()
    table = Table("command", "p50, s", "longest, s", "required")
    for command, times in seconds.items():
        table.add_row(
            command, f"{statistics.median(times):.2f}", f"{max(times):.2f}", REQUIRED_SECONDS.get(command, "")
        )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rounds", nargs="?", type=int, default=10, help="measured rounds (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.rounds)
