"""Events that signals set, without a deadlock.

Python runs a signal handler in the main thread, between two instructions. If that thread is just entering `wait()`
of an event, it holds the event's lock, and `set()` in the handler would wait for that lock forever.
"""

import _thread
import signal
import threading
from collections.abc import Callable
from types import FrameType

SignalHandler = Callable[[int, FrameType | None], object] | int | None
"""What `signal.signal` returns."""


def set_on_signal(event: threading.Event, signal_number: signal.Signals) -> SignalHandler:
    """Let a signal set an event; return the previous handler.

    Another thread sets the event. It is started without `threading.Thread`, whose locks the main thread may hold.
    """
    return signal.signal(signal_number, lambda *_: _thread.start_new_thread(event.set, ()))
