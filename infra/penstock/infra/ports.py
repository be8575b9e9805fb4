"""TCP ports on this machine: which are free, who has one, does one answer."""

import fcntl
import os
import random
import socket
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

import psutil

from penstock.infra.errors import PortTakenError

LOCALHOST = "127.0.0.1"
LOWEST_OFFERED = 15_000


def answers(host: str, port: int, seconds: float = 0.5) -> bool:
    """Say whether something accepts connections there."""
    try:
        with closing(socket.create_connection((host, port), timeout=seconds)):
            return True
    except OSError:
        return False


def require_free(host: str, port: int, purpose: str) -> None:
    """Raise PortTakenError, which names who has the port where that can be known, unless it is free."""
    try:
        _bind(host, port).close()
    except OSError as error:
        raise PortTakenError(
            f"Port {port} on {host}, wanted for {purpose}, cannot be had: {error.strerror}{_owner(port)}. "
            "End that program, or set another port."
        ) from error


def free_ports(count: int, host: str = LOCALHOST, *, in_a_row: bool = False) -> list[int]:
    """Return ports that nobody listens on just now; each is different.

    They lie below the range from which the system takes ports for outgoing connections, so that none of those
    takes one before its server starts; and as long as this process lives no other is offered them here. A program
    that chooses its ports otherwise may still take one.
    """
    choice = random.SystemRandom()
    step = count if in_a_row else 1
    ports: list[int] = []
    while len(ports) < count:
        first = choice.randrange(LOWEST_OFFERED, _first_outgoing_port() - step)
        wanted = range(first, first + step)
        if all(_is_free(host, port) and _reserved(port) for port in wanted):
            ports += wanted
    return ports


def _is_free(host: str, port: int) -> bool:
    try:
        _bind(host, port).close()
    except OSError:
        return False
    return True


_OFFERED: set[int] = set()


def _reserved(port: int) -> bool:
    """Take a port for this process, by a lock on its byte of a file that all processes here share."""
    if port in _OFFERED:
        return False
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _OFFERED.add(port)
    return True


@cache
def _reservations() -> int:
    """The open file of reservations: closing it would give all of this process's back."""
    path = Path(tempfile.gettempdir()) / f"penstock-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _bind(host: str, port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
    except OSError:
        server.close()
        raise
    return server


def _first_outgoing_port() -> int:
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(outgoing.read_text().split()[0]) if outgoing.exists() else 32_768
    return max(first, LOWEST_OFFERED + 10_000)


def _owner(port: int) -> str:
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return ""
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
        if listens and connection.pid:
            return f" (process {connection.pid} has it: {_program(connection.pid)})"
    return ""


def _program(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())[:120]
    except psutil.Error:
        return "its name cannot be read"
