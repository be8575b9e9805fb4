"""The process manager of this checkout's stack, and what it holds."""

from collections.abc import Iterator

import psutil

from penstock.infra.processes import Manager
from penstock.platform.settings import Settings


def manager_of(settings: Settings) -> Manager:
    """The manager of the stack in the home folder, running or not."""
    return Manager(settings.home / "run", settings.home / "logs")


def ports_held(manager: Manager) -> set[int]:
    """The ports on which programs of a running stack listen."""
    return {port for pid in manager.pids().values() for port in _listening(pid)}


def _listening(pid: int) -> Iterator[int]:
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        connections = [connection for member in family for connection in member.net_connections("tcp")]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN:
            yield connection.laddr.port
