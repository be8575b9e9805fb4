"""Clients of a server under test: those that send nothing, or slowly, and one that works."""

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from tests.patience import PATIENCE_S

CLOSED_WITHIN_S = 5.0


def get(
    port: int, path: str = "/", context: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, bytes]:
    """Send a request; return the status and the body of the response."""
    connection = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        if context is None
        else http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=context)
    )
    with closing(connection):
        connection.request(
            "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        return response.status, response.read()


@contextmanager
def open_connections(port: int, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open connections that send some bytes and then nothing."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
            )
            connection.sendall(sent)
            connections.append(connection)
        yield connections


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server closes the connection without a response; waits for it."""
    connection.settimeout(CLOSED_WITHIN_S)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def read_page(connection: socket.socket) -> bytes:
    """Read one response; return its body."""
    with closing(http.client.HTTPResponse(connection)) as response:
        response.begin()
        return response.read()
