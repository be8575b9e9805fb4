"""An HTTP server in a thread of its own, for applications of ASGI, with limits for slow and many clients."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import uvicorn
from uvicorn.server import ServerState

from penstock.core.errors import HttpServerError
from penstock.core.http.asgi import AsgiApplication
from penstock.core.http.connections import ConnectionLimits, ConnectionRegistry
from penstock.core.http.limited_protocol import LimitedProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGIApplication

log = logging.getLogger(__name__)

BACKLOG = 512
ACCEPT_RETRY_S = 0.2
STOP_TIMEOUT_S = 10.0
"""How long requests may take to end after the server stops."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The certificate of a server with its chain, and its key, as PEM files."""

    certificate: Path
    key: Path


class HttpServer:
    """Serves one application at one address. Starting it twice is an error."""

    def __init__(
        self,
        application: AsgiApplication,
        host: str,
        port: int,
        *,
        name: str,
        limits: ConnectionLimits | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self._limits = limits or ConnectionLimits()
        self._config = uvicorn.Config(
            cast("ASGIApplication", application),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_keep_alive=round(self._limits.idle_timeout_s),
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        self._host, self._requested_port = host.removeprefix("[").removesuffix("]"), port
        self._registry = ConnectionRegistry(self._limits)
        self._state = ServerState()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._bound_port: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def port(self) -> int:
        """The port of the server, once it has started."""
        assert self._bound_port is not None
        return self._bound_port

    @property
    def is_serving(self) -> bool:
        """Whether the server accepts connections."""
        return self._thread.is_alive() and not self._stop_requested.is_set()

    def start(self) -> None:
        """Listen and serve from now on; raise HttpServerError if the address or the certificate cannot be used."""
        try:
            self._config.load()
        except OSError as error:  # ssl.SSLError is one
            raise HttpServerError(
                f"The certificate {self._config.ssl_certfile} with the key {self._config.ssl_keyfile} "
                f"cannot be used: {error}. Name a PEM file of each."
            ) from None
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            self._listener = socket.create_server(
                (self._host, self._requested_port), family=family, backlog=BACKLOG
            )
        except OSError as error:
            raise HttpServerError(
                f"Nothing can listen on {self._host}:{self._requested_port}: {error.strerror or error}. "
                "Stop the program that uses it, or use another address."
            ) from None
        self._listener.setblocking(False)
        self._bound_port = int(self._listener.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def stop(self) -> None:
        """Refuse new connections, let requests end, and return when the server has ended."""
        if self._loop is not None:
            self.call(self._stop_requested.set)
            self._thread.join()

    def call(self, callback: Callable[[], object]) -> None:
        """Call a function in the thread of the server; nothing happens before its start and after its end."""
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(callback)

    def _run(self) -> None:
        assert self._loop is not None
        with contextlib.closing(self._loop):
            asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        self._start_accepting(loop)
        await self._stop_requested.wait()
        loop.remove_reader(self._listener)
        self._listener.close()
        await self._close_connections()

    def _start_accepting(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._stop_requested.is_set():
            loop.add_reader(self._listener, self._accept_connection, loop)

    def _accept_connection(self, loop: asyncio.AbstractEventLoop) -> None:
        """Accept one connection in each turn of the loop, so that one that makes way closes its file first."""
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has gone
        except OSError as error:
            log.warning("Connection not accepted (error=%s)", error)
            loop.remove_reader(self._listener)
            loop.call_later(ACCEPT_RETRY_S, self._start_accepting, loop)
            return
        protocol = LimitedProtocol(self._config, self._state, self._registry, accepted)
        self._handshakes.add(handshake := loop.create_task(self._open_connection(protocol, accepted)))
        handshake.add_done_callback(self._handshakes.discard)
        self._registry.admit(protocol)

    async def _open_connection(self, protocol: LimitedProtocol, accepted: socket.socket) -> None:
        timeout_s = self._registry.limits.head_timeout_s if self._config.ssl is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, accepted, ssl=self._config.ssl, ssl_handshake_timeout=timeout_s
            )
        except OSError:
            # The client sends no TLS, or nothing, or does not trust the certificate.
            self._registry.release(protocol)

    async def _close_connections(self) -> None:
        """Let requests end that have arrived, and close all other connections."""
        for connection in self._registry.list_connections():
            if connection.is_waiting:
                connection.abort()
            else:
                connection.shutdown()
        if unfinished := {*self._state.tasks, *self._handshakes}:
            await asyncio.wait(unfinished, timeout=STOP_TIMEOUT_S)
        for connection in self._registry.list_connections():
            connection.abort()
        while unfinished := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in unfinished:
                task.cancel()
            await asyncio.wait(unfinished)
        await asyncio.sleep(0)  # transports close their sockets in the next turn of the loop
