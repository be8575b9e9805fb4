"""The sockets of running processes that nobody declared, read from the kernel's own list."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path

import psutil

from penstock.platform.security.listeners import Profile, list_listeners
from penstock.platform.security.open_sockets import OpenSocket, find_listener

LISTEN_STATE = "0A"


def find_undeclared(
    profile: Profile, program: str, pid: int, known_ports: Mapping[str, int]
) -> list[OpenSocket]:
    """List the sockets of a process and its descendants that have no row in the table."""
    listeners = list_listeners(profile, program)
    return [one for one in read_sockets(pid) if find_listener(one, listeners, known_ports) is None]


def read_sockets(pid: int) -> set[OpenSocket]:
    """Read the listening sockets of a process tree from /proc, without psutil's own lists of them."""
    root = psutil.Process(pid)
    sockets = set()
    for process in (root, *root.children(recursive=True)):
        try:
            inodes = set(_list_socket_inodes(process.pid))
            name = process.name()
        except (OSError, psutil.NoSuchProcess):
            continue  # it has ended
        for table in ("tcp", "tcp6"):
            for address, port, inode in _read_table(process.pid, table):
                if inode in inodes:
                    sockets.add(OpenSocket(address, port, name))
    return sockets


def _list_socket_inodes(pid: int) -> Iterator[str]:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            yield target.removeprefix("socket:[").removesuffix("]")


def _read_table(pid: int, table: str) -> Iterator[tuple[str, int, str]]:
    try:
        lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if fields[3] == LISTEN_STATE:
            address, _, port = fields[1].partition(":")
            yield _decode_address(address), int(port, 16), fields[9]


def _decode_address(text: str) -> str:
    """Return an address of /proc/net, which is written as words in the order of this machine."""
    words = [bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8)]
    packed = b"".join(words)
    # Java writes addresses of IPv4 as those of IPv6.
    return str(ip_address(packed.removeprefix(bytes(10) + b"\xff\xff") if len(packed) == 16 else packed))
