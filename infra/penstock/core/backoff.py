"""Delays before an exited program is restarted. Restarts never stop.

The tether applies them. supervisord itself waits one second more each time and stops after a number of tries,
so a short outage of the broker would leave the platform down. It also restarts a program that fails after a few
seconds without any delay.
"""

from dataclasses import dataclass

INITIAL_BACKOFF_S = 0.5
MAX_BACKOFF_S = 30.0
HEALTHY_RUN_S = 30.0
"""After a run of this length, the next failure counts as the first one."""


@dataclass(frozen=True)
class RestartBackoff:
    """The number of consecutive failures of a program."""

    failures: int = 0

    def after_run(self, run_s: float) -> "RestartBackoff":
        """Return the backoff after a failed run of this length."""
        return RestartBackoff(1 if run_s >= HEALTHY_RUN_S else self.failures + 1)

    @property
    def delay_s(self) -> float:
        """The delay before the next start: 0.5 s, doubled after each failure, up to 30 s."""
        doublings = min(max(self.failures - 1, 0), 16)
        return min(INITIAL_BACKOFF_S * 2.0**doublings, MAX_BACKOFF_S)
