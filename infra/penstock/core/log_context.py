"""The stream and batch that a thread works on, for the lines of its log."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class LogContext:
    """A stream and its current batch, if any."""

    stream: str
    batch: int | None = None


_CURRENT_CONTEXT: ContextVar[LogContext | None] = ContextVar("penstock_work", default=None)


def current_log_context() -> LogContext | None:
    """Return the context of this thread, or None outside of a stream."""
    return _CURRENT_CONTEXT.get()


@contextmanager
def bind_log_context(stream: str, batch: int | None = None) -> Iterator[None]:
    """Add the stream and batch to all log lines inside the block."""
    token = _CURRENT_CONTEXT.set(LogContext(stream, batch))
    try:
        yield
    finally:
        _CURRENT_CONTEXT.reset(token)
