"""Runs a stack under random kills and pauses for a given time.

    python -m tests.benchmarks.soak [MINUTES] [SECONDS_BETWEEN] [SEED]

Every few seconds the benchmark chooses a process of the stack at random: a program, a child of it, or the process
manager. It kills the process with SIGKILL, or suspends it with SIGSTOP for up to half a minute, which is twice a
lease timeout. The stack restarts killed processes. At the end the feed stops, and these are compared: tables, panes
and ledger with a computation in DuckDB from the topic; the archive with the topic, record by record; the topic with
the acknowledgements of the producer; the materializations in Dagster with the batches, each once and in order. Then
the stream is audited. `tests/platform/whole/test_soak.py` is a short form of this benchmark.
"""

import argparse
import random
import shutil
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


def main(minutes: float, between: float, seed: int | None) -> None:
    """Run the stack with kills and pauses, and compare its results."""
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
    """Yield a folder that is removed at the end; after a failure, print its path and retain it."""
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
    counts = check_exactness(stack)
    console.print(
        f"{counts.records:,} records, with all acknowledged ones; {counts.windows:,} windows with exact results"
    )
    console.print(f"{counts.materializations:,} materializations: each batch once, in order")
    with stack.without_feed():
        wait_for_balance(stack)
        wait_for_archive(stack)
        console.print("panes, ledger and archive contain each record once")
        check_audit(stack)
        console.print("the audit passes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "minutes", nargs="?", type=float, default=30.0, help="duration (default: %(default)s)"
    )
    parser.add_argument(
        "between",
        nargs="?",
        type=float,
        default=8.0,
        metavar="SECONDS_BETWEEN",
        help="seconds between two kills or pauses (default: %(default)s)",
    )
    parser.add_argument("seed", nargs="?", type=int, help="seed of the choices (default: random)")
    arguments = parser.parse_args()
    main(arguments.minutes, arguments.between, arguments.seed)
