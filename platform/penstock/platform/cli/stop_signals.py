"""Orderly shutdown on SIGTERM and Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.signal_events import SignalHandler, set_on_signal


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set; restore the previous handlers at the end of the block."""
    stop = threading.Event()
    previous_handlers: dict[signal.Signals, SignalHandler] = {
        number: set_on_signal(stop, number) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
