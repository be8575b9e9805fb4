"""A stack under random kills, for as long as asked.

    python -m tests.benchmarks.soak [minutes] [seconds between] [seed]

Every few seconds one process, chosen from all of the stack's, is killed with SIGKILL; whatever keeps it brings it
back. At the end the feed is stopped, the table compared with what DuckDB makes of the topic's own bytes, and the
topic with what was acknowledged to the producer. `tests/platform/whole/test_kills.py` does it once for each.
"""

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from tests.platform.whole.expected import settled
from tests.platform.whole.stack import ScratchStack, until

from penstock.infra.jars import ensure_jars
from penstock.ingestion.ledger import read_addresses

BACK_SECONDS = 180.0


def killed_for(stack: ScratchStack, seconds: float, between: float, chance: random.Random) -> Counter[str]:
    """Kill at random for a while; returns how often each program was."""
    killed: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        programs = stack.pids()
        if programs:
            name = chance.choice(sorted(programs))
            try:
                os.kill(programs[name], signal.SIGKILL)
                killed[name] += 1
            except ProcessLookupError:
                pass  # it had just ended, by the kill of another
        time.sleep(chance.uniform(between / 2, 1.5 * between))
    return killed


def exact(stack: ScratchStack) -> tuple[int, int]:
    """Compare tables, topic and acknowledgements; returns how many windows and records were compared."""
    until(stack.ready, BACK_SECONDS, "everything to be back")
    with stack.without_feed():
        windows = settled(stack)
        records = stack.records("sensors")
    acknowledged = {
        (one.partition, one.offset) for one in read_addresses(stack.home / "producers" / "sensors-1")
    }
    in_topic = {(partition, offset) for partition, offset, _, _ in records}
    assert acknowledged <= in_topic, (
        f"{len(acknowledged - in_topic)} acknowledged records are not in the topic"
    )
    values = [value for _, _, _, value in records]
    assert len(values) == len(set(values)), "a record is in the topic twice"
    return len(windows), len(records)


def main(minutes: float = 30.0, between: float = 5.0, seed: int = 1) -> None:
    """Run, compare, print."""
    console = Console()
    jars = Path(".penstock/jars").resolve()
    ensure_jars(jars)
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch) / "home", jars)
        with stack.ended_at_last():
            stack.up()
            killed = killed_for(stack, minutes * 60, between, random.Random(seed))
            windows, records = exact(stack)
    console.print(f"{sum(killed.values())} kills in {minutes:g} min: {dict(sorted(killed.items()))}")
    console.print(
        f"{records:,} records, {windows:,} windows: exact, and every acknowledged record is there once"
    )


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:3]), *(int(word) for word in sys.argv[3:4]))
