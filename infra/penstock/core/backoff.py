"""How long to wait before a program that ended is started again: it is never given up.

Decided here and done by the tether. The process manager's own way is to wait one second more each time
and to give up after a number of tries, which turns a broker that is away for a while into a platform that
stays down; and it counts a program that fails after a few seconds as well, and restarts it at once.
"""

from dataclasses import dataclass

INITIAL_BACKOFF_S = 0.5
MAX_BACKOFF_S = 30.0
HEALTHY_RUN_S = 30.0
"""A program that ran for as long as this is well: its next failure counts as the first."""


@dataclass(frozen=True)
class RestartBackoff:
    """How often a program has failed in a row."""

    failures: int = 0

    def after_run(self, run_s: float) -> "RestartBackoff":
        """Return the count after one more end, of a run that took so long."""
        return RestartBackoff(1 if run_s >= HEALTHY_RUN_S else self.failures + 1)

    @property
    def delay_s(self) -> float:
        """How long to wait now: half a second at first, doubled each time, half a minute at most."""
        doublings = min(max(self.failures - 1, 0), 16)
        return min(INITIAL_BACKOFF_S * 2.0**doublings, MAX_BACKOFF_S)
