"""TCP ports on this machine: which are free, who has one, does one answer."""

import random
import socket
from contextlib import ExitStack, closing
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


def free_ports(count: int, host: str = LOCALHOST) -> list[int]:
    """Return ports that nobody listens on just now; each is different.

    They lie below the range from which the system takes ports for outgoing connections, so that none
    of those takes one before its server starts. Another program may still do so.
    """
    choice = random.SystemRandom()
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            port = choice.randrange(LOWEST_OFFERED, _first_outgoing_port())
            try:
                held.enter_context(_bind(host, port))
            except OSError:
                continue
            ports.append(port)
        return ports


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
