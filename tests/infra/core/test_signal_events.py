"""A signal sets an event at any instruction of the main thread."""

import signal
import threading

from tests.patience import PATIENCE_S

from penstock.core.signal_events import set_on_signal


def test_a_signal_sets_an_event_whose_lock_the_main_thread_holds() -> None:
    """`penstock status --watch` hung after a Ctrl-C that came while it started to wait."""
    event = threading.Event()
    previous = set_on_signal(event, signal.SIGUSR1)
    try:
        with event._cond:  # as in the first instruction of `wait`
            signal.raise_signal(signal.SIGUSR1)
        assert event.wait(PATIENCE_S)
    finally:
        signal.signal(signal.SIGUSR1, previous)
