"""Cuts the power at any operation of a run, and starts again from what the disk may hold.

The long form: `make power-cuts`, or `python -m tests.pipelines.engine.power --states 100000 --seed 7`.
"""

import random
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import make_batches, run_batches
from tests.pipelines.engine.power.crash_states import Crash, choose_crash
from tests.pipelines.engine.power.recorded_disk import RecordedDisk

from penstock.conformance.reference.input_records import InputBatch
from penstock.core import file_sync
from penstock.core.errors import PenstockError
from penstock.engine.plan.stages import Plan
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths

TableRows = Mapping[str, Sequence[Mapping[str, Any]]]
SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


@dataclass(frozen=True)
class RecordedRun(ABC):
    """A run that was recorded, and can be started again after a cut at any of its operations."""

    disk: RecordedDisk

    @abstractmethod
    def find_fault(self, crash: Crash) -> str:
        """Start again after a cut and run to the end; return what is wrong, or nothing."""

    def shrink(self, crash: Crash) -> Crash:
        """Return a crash with as few lost names and contents as still show a fault."""
        for smaller in crash.shrunk_choices():
            if self.find_fault(smaller):
                return self.shrink(smaller)
        return crash


@dataclass(frozen=True)
class StreamRun(RecordedRun):
    """A stream that was recorded, and the tables that every start after a cut must end with."""

    plan: Plan
    batches: Sequence[InputBatch]
    rows: TableRows

    def find_fault(self, crash: Crash) -> str:
        """Start again after a cut and run to the end; return what is wrong, or nothing."""
        with scratch_folder() as folder:
            crash.write(folder)
            bench = Bench(self.plan, folder)
            try:
                run_batches(bench, batches=list(self.batches))
                rows = read_rows(bench)
            except PenstockError as refusal:
                return f"refused: {refusal}"
            except Exception as error:  # noqa: BLE001  every error is a finding
                return f"{type(error).__name__}: {error}"
        wrong = [table for table in self.rows if rows[table] != self.rows[table]]
        return f"other rows in {', '.join(wrong)}" if wrong else ""


@contextmanager
def record_run(plan: Plan, *, syncs: bool = True, batches: Sequence[InputBatch] = ()) -> Iterator[StreamRun]:
    """Run the batches on a recorded disk."""
    batches = batches or make_batches()
    with scratch_folder() as folder:
        disk, bench = RecordedDisk(folder), Bench(plan, folder, syncs=syncs)
        file_sync.forget_reachable_folders()
        with disk.recording():
            run_batches(bench, batches=list(batches))
        yield StreamRun(disk, plan, batches, read_rows(bench))


def sample_crashes(run: RecordedRun, random_source: random.Random, count: int) -> Iterator[Crash]:
    """Yield crashes at states in turn, so that each operation is followed by about as many."""
    states = run.disk.states
    for number in range(count):
        yield choose_crash(states[number * len(states) // count if count < len(states) else number % len(states)],
                           random_source)  # fmt: skip


def read_rows(bench: Bench) -> TableRows:
    """Return the rows of all tables."""
    tables = [*list_owned_paths(bench.plan), *list_quarantine_paths(bench.plan)]
    return {table: bench.rows(table) for table in tables}


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new folder, in memory if possible."""
    folder = Path(tempfile.mkdtemp(prefix="power-", dir=SCRATCH))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
