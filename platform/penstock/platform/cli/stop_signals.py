"""Being asked to end, by Ctrl-C or by whoever keeps the process, and ending in order."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """Yield what is set when the process is asked to end; afterwards signals do what they did before."""
    stop = threading.Event()
    previous_handlers = {
        number: signal.signal(number, lambda _number, _frame: stop.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
