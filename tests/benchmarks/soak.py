"""Runs a stack under random kills and pauses for a given time.

    python -m tests.benchmarks.soak [minutes] [seconds between] [seed]

Every few seconds one kind of the stack's processes is chosen (a program, what it has started, what keeps it), and
one of that kind is killed with SIGKILL, or stopped with SIGSTOP for up to half a minute, twice as long as a lease;
whatever keeps it brings it back. At the end the feed is stopped, and compared are: the table with what DuckDB makes
of the topic's own bytes, and so panes and ledger; the archive with the topic, record by record; the topic with what
was acknowledged to the producer; Dagster's materializations with the batches, each told once, in order. Then the
stream is audited. `tests/platform/whole/test_soak.py` is it in short.
"""

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from tests.platform.whole.random_kills import Disturbance
from tests.platform.whole.scratch_stack import ScratchStack
from tests.platform.whole.stack_processes import check_exactness
from tests.platform.whole.table_comparison import check_audit, wait_for_archive, wait_for_balance

from penstock.infra.jars import ensure_jars

REPORT_INTERVAL_S = 60.0
MAX_PAUSE_S = 30.0

console = Console()


def main(minutes: float = 30.0, between: float = 8.0, seed: int | None = None) -> None:
    """Run, compare, print."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    console.print(f"seed {seed}")
    jars = Path(".penstock/jars").resolve()
    ensure_jars(jars)
    with keep_folder_on_failure() as scratch:
        stack = ScratchStack(scratch / "home", jars)
        disturbance = Disturbance(stack, random.Random(seed), between, MAX_PAUSE_S)
        with stack.stopped_on_exit():
            stack.up()
            run_disturbance(disturbance, minutes)
            compare_results(stack)


@contextmanager
def keep_folder_on_failure() -> Iterator[Path]:
    """A folder that is removed at the end, or printed and kept after a failure."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        yield folder
    except BaseException:
        console.print(f"failed; its files are in {folder}")
        raise
    shutil.rmtree(folder)


def run_disturbance(disturbance: Disturbance, minutes: float) -> None:
    """Kill and pause for the given time, and print the counts."""
    end = time.monotonic() + minutes * 60
    while (remaining_s := end - time.monotonic()) > 0:
        disturbance.run(min(remaining_s, REPORT_INTERVAL_S))
        console.print(
            f"{remaining_s / 60:.0f} min to go, {disturbance.counts.total()} kills and pauses so far"
        )
    counts = dict(sorted(disturbance.counts.items()))
    console.print(f"{disturbance.counts.total()} kills and pauses in {minutes:g} min: {counts}")


def compare_results(stack: ScratchStack) -> None:
    """Compare the results, and print each comparison."""
    compared = check_exactness(stack)
    console.print(
        f"{compared.records:,} records, none of the acknowledged missing; {compared.windows:,} windows: exact"
    )
    console.print(f"{compared.materializations:,} materializations report each batch once, in order")
    with stack.without_feed():
        wait_for_balance(stack)
        wait_for_archive(stack)
        console.print("panes, ledger and archive hold each record once")
        check_audit(stack)
        console.print("the audit finds nothing")


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:3]), *(int(word) for word in sys.argv[3:4]))
