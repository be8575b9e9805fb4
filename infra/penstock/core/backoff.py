"""Delays before an exited program is restarted. Restarts never stop.

The tether applies them. supervisord itself waits one second more each time and stops after a number of tries,
so a short outage of the broker would leave the platform down. It also restarts a program that fails after a few
seconds without any delay.
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
