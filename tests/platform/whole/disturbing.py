"""Kills and pauses at random among all processes of a stack."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil
from tests.platform.whole.killing import processes
from tests.platform.whole.stack import ScratchStack

KILLED, PAUSED = "killed", "paused"


@dataclass
class Disturbance:
    """Disturbs a stack: every so often, something of it is killed (SIGKILL) or put to sleep (SIGSTOP) for a while.

    What is chosen among are all kinds of processes that were ever seen. A kind that is not there at that moment is
    spared: what is left, the manager above all, would be disturbed again before it could begin the others. What
    sleeps longer than its lease, or than others wait for it, finds the world changed when it wakes (SIGCONT).
    """

    stack: ScratchStack
    chance: random.Random
    between: float
    """Seconds from one to the next, about."""
    longest_pause: float
    done: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)
    _asleep: list[tuple[float, psutil.Process]] = field(default_factory=list)

    def go_on(self, seconds: float) -> None:
        """Disturb the stack for so long; nothing sleeps any more at the end."""
        end = time.monotonic() + seconds
        try:
            while (now := time.monotonic()) < end:
                self._wake(now)
                self._disturb_one(now)
                time.sleep(self.chance.uniform(self.between / 2, 1.5 * self.between))
        finally:
            self._wake(float("inf"))

    def _disturb_one(self, now: float) -> None:
        there = processes(self.stack)
        self.seen |= there.keys()
        what = self.chance.choice(sorted(self.seen))
        pause = self.chance.uniform(0, self.longest_pause) if self.chance.random() < 1 / 2 else 0.0
        if what not in there:
            return
        process = self.chance.choice(there[what])
        if _lives(process.suspend if pause else process.kill):
            self.done[f"{what} {PAUSED if pause else KILLED}"] += 1
        if pause:
            self._asleep.append((now + pause, process))

    def _wake(self, now: float) -> None:
        for until, process in self._asleep:
            if until <= now:
                _lives(process.resume)
        self._asleep = [(until, process) for until, process in self._asleep if until > now]


def _lives(do: Callable[[], None]) -> bool:
    """Do something to a process; False for one that has just ended, by the end of another."""
    try:
        do()
    except psutil.NoSuchProcess:
        return False
    return True
