"""Delays between restarts of a program."""

from penstock.core.backoff import MAX_BACKOFF_S, RestartBackoff


def _compute_delays(runs: list[float]) -> list[float]:
    backoff, delays = RestartBackoff(), []
    for ran_seconds in runs:
        backoff = backoff.after_run(ran_seconds)
        delays.append(backoff.delay_s)
    return delays


def test_delays_double_up_to_the_maximum() -> None:
    assert _compute_delays([0.1] * 8) == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert _compute_delays([0.1] * 10_000)[-1] == MAX_BACKOFF_S


def test_a_long_run_resets_the_delay() -> None:
    assert _compute_delays([0.1, 0.1, 3600, 0.1]) == [0.5, 1, 0.5, 1]
