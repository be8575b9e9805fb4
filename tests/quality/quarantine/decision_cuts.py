"""Cuts the power at any operation of a log of decisions, and records the rest of them."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.pipelines.engine.power.crash_states import Crash
from tests.pipelines.engine.power.power_cuts import RecordedRun, scratch_folder
from tests.pipelines.engine.power.recorded_disk import RecordedDisk

from penstock.core import file_sync
from penstock.core.errors import PenstockError
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision

FILE_NAME = "quarantine/sensors.jsonl"
CALLS = 8


@dataclass(frozen=True)
class DecisionRun(RecordedRun):
    """Calls that recorded decisions, and how many operations of the disk there were when each returned."""

    calls: Sequence[Sequence[QuarantineDecision]]
    returned_after: Sequence[int]

    def find_fault(self, crash: Crash) -> str:
        """Read the decisions after a cut, and record all again; return what is wrong, or nothing."""
        operation_count = 1 + next(n for n, state in enumerate(self.disk.states) if state is crash.state)
        returned_calls = sum(count <= operation_count for count in self.returned_after)
        with scratch_folder() as folder:
            crash.write(folder)
            log = DecisionLog(folder / FILE_NAME)
            try:
                found = log.read_all()
                for call in self.calls:
                    log.record(call)
                completed = log.read_all()
            except PenstockError as refusal:
                return f"refused: {refusal}"
        if found not in (self.list_decisions(returned_calls), self.list_decisions(returned_calls + 1)):
            return f"{len(found)} decisions after {returned_calls} calls"
        return (
            "" if completed == self.list_decisions(CALLS) else "other decisions after the rest was recorded"
        )

    def list_decisions(self, calls: int) -> list[QuarantineDecision]:
        """Return the decisions of the first calls."""
        return [decision for call in self.calls[:calls] for decision in call]


@contextmanager
def record_decisions(random_source: random.Random) -> Iterator[DecisionRun]:
    """Record decisions in some calls on a recorded disk."""
    calls = [
        [
            QuarantineDecision("replayed", number, offset, 1_000, value=random_source.randbytes(20))
            for offset in range(random_source.randint(1, 6))
        ]
        for number in range(CALLS)
    ]
    with scratch_folder() as folder:
        disk, returned_after = RecordedDisk(folder), list[int]()
        file_sync.forget_reachable_folders()
        with disk.recording():
            for call in calls:
                DecisionLog(folder / FILE_NAME).record(call)
                returned_after.append(len(disk.states))
        yield DecisionRun(disk, calls, returned_after)
