"""Connections of a server: how long each may wait, how many there may be, and which one goes first.

A connection waits until its client has sent a whole request. At the limit, the connection that has waited longest
is closed for the new one, so that clients which send nothing, or slowly, do not shut out those that work.
"""

import resource
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Time limits and the number of connections; the open files of the process may allow fewer."""

    head_timeout_s: float = 10.0
    """How long the TLS handshake, and the head of a request, may take."""
    idle_timeout_s: float = 60.0
    """How long a connection may stay open after a response without the start of another request."""
    max_connections: int = 256

    @property
    def effective_connections(self) -> int:
        """The number of connections: at most half of the files that the process may open."""
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft_limit == resource.RLIM_INFINITY:
            return self.max_connections
        return max(1, min(self.max_connections, soft_limit // 2))


class AdmittedConnection(Protocol):
    """A connection that counts against the limit."""

    @property
    def is_waiting(self) -> bool:
        """Whether the client has not sent a whole request."""

    @property
    def waiting_since_s(self) -> float:
        """When the wait started, by the clock of the event loop."""

    def abort(self) -> None:
        """Close the connection without a response."""

    def shutdown(self) -> None:
        """Close the connection after the response that is under way."""


class ConnectionRegistry:
    """The connections of one server, in the thread of its event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._max_connections = limits.effective_connections
        self._connections: set[AdmittedConnection] = set()

    def admit(self, connection: AdmittedConnection) -> None:
        """Count a connection; where that is one too many, close the one that has waited longest."""
        self._connections.add(connection)
        if len(self._connections) <= self._max_connections:
            return
        waiting = [one for one in self._connections if one.is_waiting]
        longest_waiting = min(waiting, key=lambda one: one.waiting_since_s, default=connection)
        self.release(longest_waiting)
        longest_waiting.abort()

    def release(self, connection: AdmittedConnection) -> None:
        """Forget a connection that is closed."""
        self._connections.discard(connection)

    def list_connections(self) -> list[AdmittedConnection]:
        """Return the open connections."""
        return list(self._connections)
