"""HTTP/1.1 with limits for each connection, on uvicorn's protocol."""

import asyncio
import contextlib
import socket

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from penstock.core.http.connections import ConnectionRegistry


class LimitedProtocol(H11Protocol):
    """A connection, from the moment it is accepted. It is closed when the head of a request takes too long.

    The time for a body is left to the application, which knows what it expects. h11 limits the head to 16 KB, and
    uvicorn closes a connection on which no request follows.
    """

    def __init__(
        self, config: Config, state: ServerState, registry: ConnectionRegistry, accepted: socket.socket
    ) -> None:
        super().__init__(config, state, {})
        self._accepted = accepted
        self._is_open = False
        self.waiting_since_s = self.loop.time()
        self._registry = registry
        self._head_deadline: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the client has not sent a whole request."""
        return self._is_between_requests or self.cycle.more_body

    @property
    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time for the first head."""
        super().connection_made(transport)
        self._is_open = True
        self._start_head_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place of the connection to others."""
        self._clear_head_deadline()
        self._registry.release(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes. The first ones of a head start its time, and its end stops it."""
        if self._is_between_requests and self._head_deadline is None:
            self._start_head_deadline()
        super().data_received(data)
        if not self._is_between_requests:
            self._clear_head_deadline()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting_since_s = self.loop.time()
        super().on_response_complete()

    def abort(self) -> None:
        """Close the connection without a response."""
        if self._is_open:
            self.transport.abort()
            return
        # The handshake is under way, and ends with the socket.
        with contextlib.suppress(OSError):
            self._accepted.shutdown(socket.SHUT_RDWR)

    def _start_head_deadline(self) -> None:
        self._head_deadline = self.loop.call_later(self._registry.limits.head_timeout_s, self.abort)

    def _clear_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None
