"""The sockets on which processes listen now, compared with the declared listeners."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

import psutil

from penstock.core.http.addresses import is_loopback
from penstock.platform.security.listeners import Listener


@dataclass(frozen=True, slots=True, order=True)
class OpenSocket:
    """A TCP socket on which a process listens."""

    address: str
    port: int
    process: str
    """The name of the executable, such as `java`."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.address)


def list_open_sockets(pid: int) -> set[OpenSocket]:
    """Return what a process and its descendants listen on; nothing of processes that end meanwhile."""
    try:
        root = psutil.Process(pid)
        members = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return set()
    return {socket for member in members for socket in _list_member_sockets(member)}


def _list_member_sockets(process: psutil.Process) -> Iterator[OpenSocket]:
    try:
        name = process.name()
        connections = process.net_connections("tcp")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN:
            yield OpenSocket(plain_address(connection.laddr.ip), connection.laddr.port, name)


def plain_address(address: str) -> str:
    """Return an address without the prefix that Java gives to those of IPv4."""
    parsed = ip_address(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)


def find_listener(
    socket: OpenSocket, listeners: Iterable[Listener], known_ports: Mapping[str, int]
) -> Listener | None:
    """Return the declared listener of a socket; None if it is not declared, or not for so wide a reach."""
    for listener in listeners:
        is_within_reach = socket.is_loopback or listener.reach != "loopback"
        if is_within_reach and listener.port.allows(socket.port, known_ports):
            return listener
    return None
