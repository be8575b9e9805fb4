"""TCP ports on this machine: find free ports, reserve them, name the owner of one in use."""

import fcntl
import os
import random
import socket
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

import psutil

from penstock.infra.errors import PortInUseError

LOCALHOST = "127.0.0.1"
MIN_OFFERED_PORT = 15_000


def accepts_connections(host: str, port: int, timeout_s: float = 0.5) -> bool:
    """Return whether something accepts connections at this address."""
    try:
        with closing(socket.create_connection((host, port), timeout=timeout_s)):
            return True
    except OSError:
        return False


def require_free_port(host: str, port: int, purpose: str) -> None:
    """Raise PortInUseError unless the port is free; the error names the owner if it is known."""
    try:
        _bind_port(host, port).close()
    except OSError as error:
        raise PortInUseError(
            f"Port {port} on {host} for {purpose} is not available: "
            f"{error.strerror}{_describe_port_owner(port)}. Stop that program, or set another port."
        ) from error


def find_free_ports(count: int, host: str = LOCALHOST, *, consecutive: bool = False) -> list[int]:
    """Return different ports on which nothing listens now.

    They lie below the range from which the system takes ports for outgoing connections, so that none of those
    takes one before its server starts; and as long as this process lives no other is offered them here. A program
    that chooses its ports otherwise may still take one.
    """
    generator = random.SystemRandom()
    step = count if consecutive else 1
    ports: list[int] = []
    while len(ports) < count:
        end = max(read_first_ephemeral_port(), MIN_OFFERED_PORT + 10_000)
        first = generator.randrange(MIN_OFFERED_PORT, end - step)
        candidates = range(first, first + step)
        if all(_is_free(host, port) and _try_reserve(port) for port in candidates):
            ports += candidates
    return ports


def read_first_ephemeral_port() -> int:
    """Return the first port that the system may give to a program that asks for any."""
    range_file = Path("/proc/sys/net/ipv4/ip_local_port_range")
    return int(range_file.read_text().split()[0]) if range_file.exists() else 32_768


def _is_free(host: str, port: int) -> bool:
    try:
        _bind_port(host, port).close()
    except OSError:
        return False
    return True


_RESERVED_PORTS: set[int] = set()


def _try_reserve(port: int) -> bool:
    """Reserve a port for this process by a lock on one byte of a file that all processes share."""
    if port in _RESERVED_PORTS:
        return False
    try:
        fcntl.lockf(_open_reservation_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _RESERVED_PORTS.add(port)
    return True


@cache
def _open_reservation_file() -> int:
    """Return the open file of reservations; closing it would release all ports of this process."""
    path = Path(tempfile.gettempdir()) / f"penstock-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _bind_port(host: str, port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
    except OSError:
        server.close()
        raise
    return server


def _describe_port_owner(port: int) -> str:
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return ""
    for connection in connections:
        is_listener = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
        if is_listener and connection.pid:
            return f" (used by process {connection.pid}: {_describe_process(connection.pid)})"
    return ""


def _describe_process(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())[:120]
    except psutil.Error:
        return "name not readable"
