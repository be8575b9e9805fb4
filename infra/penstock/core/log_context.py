"""What a thread works on, so that each line of its log can say of which stream and batch it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class LogContext:
    """A stream, and its batch where one is at work."""

    stream: str
    batch: int | None = None


_CURRENT_CONTEXT: ContextVar[LogContext | None] = ContextVar("penstock_work", default=None)


def current_log_context() -> LogContext | None:
    """Return what this thread works on; None where it is no stream."""
    return _CURRENT_CONTEXT.get()


@contextmanager
def bind_log_context(stream: str, batch: int | None = None) -> Iterator[None]:
    """Have everything that is logged inside say so."""
    token = _CURRENT_CONTEXT.set(LogContext(stream, batch))
    try:
        yield
    finally:
        _CURRENT_CONTEXT.reset(token)
