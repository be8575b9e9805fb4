"""The states of a stream, as a host reports them."""

from enum import StrEnum


class StreamState(StrEnum):
    """What a stream does. A stream that no host has run yet has no state."""

    RUNNING = "running"
    PAUSED = "paused"
    """A host has the stream and runs its timers, but it reads no records."""
    DRAINED = "drained"
    """The stream finished its batch and stopped."""
    STOPPED = "stopped"
    """The stream stopped without finishing its batch."""
    RETRYING = "retrying"
    """The stream failed; the host starts it again after a backoff."""
    FAILED = "failed"
    """The stream failed for good; it stays down until it is started or its files change."""
    FENCED = "fenced"
    """The host lost the stream's lease; another host may run it."""

    @property
    def is_failure(self) -> bool:
        """Whether the stream is down because of an error."""
        return self in (StreamState.RETRYING, StreamState.FAILED, StreamState.FENCED)

    @property
    def is_active(self) -> bool:
        """Whether a host runs the stream."""
        return self in (StreamState.RUNNING, StreamState.PAUSED)
