"""How long to wait before a program that ended is started again: it is never given up.

Decided here and done by the tether. The process manager's own way is to wait one second more each time
and to give up after a number of tries, which turns a broker that is away for a while into a platform that
stays down; and it counts a program that fails after a few seconds as well, and restarts it at once.
"""

from dataclasses import dataclass

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
HEALTHY_SECONDS = 30.0
"""A program that ran for as long as this is well: its next failure counts as the first."""


@dataclass(frozen=True)
class Backoff:
    """How often a program has failed in a row."""

    failures: int = 0

    def after(self, ran_seconds: float) -> "Backoff":
        """Return the count after one more end, of a run that took so long."""
        return Backoff(1 if ran_seconds >= HEALTHY_SECONDS else self.failures + 1)

    @property
    def seconds(self) -> float:
        """How long to wait now: half a second at first, doubled each time, half a minute at most."""
        doublings = min(max(self.failures - 1, 0), 16)
        return min(FIRST_SECONDS * 2.0**doublings, LONGEST_SECONDS)
