"""A client of supervisord: XML-RPC over its unix socket, with a timeout for every call."""

import http.client
import socket
import xmlrpc.client
from pathlib import Path
from typing import Any

from penstock.infra.errors import ProcessManagerError

RPC_TIMEOUT_S = 3.0
"""supervisord handles calls in its event loop, which runs at least once a second."""


class SupervisordClient:
    """A client of one supervisord. Calls raise ProcessManagerError if there is no answer in time."""

    def __init__(self, socket_path: Path, timeout_s: float = RPC_TIMEOUT_S) -> None:
        self._socket_path = socket_path
        self._transport = _UnixTransport(socket_path, timeout_s)

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of supervisord; an error of supervisord is raised as xmlrpc.client.Fault."""
        # The URL is a placeholder: the transport uses only the socket.
        proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=self._transport, allow_none=True)
        try:
            return getattr(proxy.supervisor, method)(*arguments)
        except (OSError, http.client.HTTPException, xmlrpc.client.ProtocolError) as error:
            raise ProcessManagerError(
                f"The process manager does not answer at {self._socket_path} ({method}: {error}). "
                "`make down` ends it, by force where that is needed."
            ) from error
        finally:
            self._transport.close()

    def is_running(self) -> bool:
        """Return whether supervisord runs and accepts calls."""
        try:
            return bool(self.call("getState")["statename"] == "RUNNING")
        except ProcessManagerError:
            return False


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, socket_path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._socket_path = socket_path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._socket_path))
        except OSError:
            self.sock.close()
            raise


class _UnixTransport(xmlrpc.client.Transport):
    def __init__(self, socket_path: Path, timeout_s: float) -> None:
        super().__init__()
        self._socket_path = socket_path
        self._timeout_s = timeout_s

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = _UnixConnection(self._socket_path, self._timeout_s)
        self._connection = host, connection  # used by close()
        return connection
