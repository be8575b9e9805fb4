"""A stack under random kills, for as long as asked.

    python -m tests.benchmarks.soak [minutes] [seconds between] [seed]

Every few seconds one kind of the stack's processes is chosen (a program, what it has started, what keeps it), and
one of that kind is killed with SIGKILL; whatever keeps it brings it back. At the end the feed is stopped, the table
compared with what DuckDB makes of the topic's own bytes, the topic with what was acknowledged to the producer, and
Dagster's materializations with the batches: each told once, in order. `tests/platform/whole/test_kills.py` is it in
short.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from tests.platform.whole.killing import exact, kill_for
from tests.platform.whole.stack import ScratchStack

from penstock.infra.jars import ensure_jars

STRETCH_SECONDS = 60.0


def main(minutes: float = 30.0, between: float = 8.0, seed: int = 1) -> None:
    """Run, compare, print."""
    console, chance = Console(), random.Random(seed)
    killed, seen = Counter[str](), set[str]()
    jars = Path(".penstock/jars").resolve()
    ensure_jars(jars)
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch) / "home", jars)
        with stack.ended_at_last():
            stack.up()
            end = time.monotonic() + minutes * 60
            while (left := end - time.monotonic()) > 0:
                killed += kill_for(stack, min(left, STRETCH_SECONDS), between, chance, seen)
                console.print(
                    f"{left / 60:.0f} min to go, {sum(killed.values())} kills, batch {stack.batch()}"
                )
            found = exact(stack)
    console.print(f"{sum(killed.values())} kills in {minutes:g} min: {dict(sorted(killed.items()))}")
    console.print(
        f"{found.records:,} records, none of the acknowledged missing; {found.windows:,} windows: exact"
    )
    console.print(f"{found.told:,} materializations tell of each batch once, in order")


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:3]), *(int(word) for word in sys.argv[3:4]))
