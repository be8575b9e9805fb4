"""Random kills and pauses of the processes of a stack."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil
from tests.platform.whole.scratch_stack import ScratchStack
from tests.platform.whole.stack_processes import find_processes

KILLED, PAUSED = "killed", "paused"


@dataclass
class Disturbance:
    """Kills (SIGKILL) or pauses (SIGSTOP) a random process of a stack at random intervals.

    It chooses among all kinds of processes seen so far. If there is no process of the chosen kind, nothing happens:
    otherwise the remaining ones, above all the manager, could never restart the others.
    """

    stack: ScratchStack
    rng: random.Random
    mean_interval_s: float
    """The mean interval in seconds."""
    max_pause_s: float
    counts: Counter[str] = field(default_factory=Counter)
    kinds: set[str] = field(default_factory=set)
    _paused: list[tuple[float, psutil.Process]] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Disturb the stack for the given time; nothing is paused at the end."""
        end = time.monotonic() + seconds
        try:
            while (now := time.monotonic()) < end:
                self._resume_due(now)
                self._disturb_one(now)
                time.sleep(self.rng.uniform(self.mean_interval_s / 2, 1.5 * self.mean_interval_s))
        finally:
            self._resume_due(float("inf"))

    def _disturb_one(self, now: float) -> None:
        processes_by_kind = find_processes(self.stack)
        self.kinds |= processes_by_kind.keys()
        kind = self.rng.choice(sorted(self.kinds))
        pause = self.rng.uniform(0, self.max_pause_s) if self.rng.random() < 1 / 2 else 0.0
        if kind not in processes_by_kind:
            return
        process = self.rng.choice(processes_by_kind[kind])
        if _try_call(process.suspend if pause else process.kill):
            self.counts[f"{kind} {PAUSED if pause else KILLED}"] += 1
        if pause:
            self._paused.append((now + pause, process))

    def _resume_due(self, now: float) -> None:
        for until, process in self._paused:
            if until <= now:
                _try_call(process.resume)
        self._paused = [(until, process) for until, process in self._paused if until > now]


def _try_call(call: Callable[[], None]) -> bool:
    """Call a method of a process; return False if the process has just ended."""
    try:
        call()
    except psutil.NoSuchProcess:
        return False
    return True
