"""The process manager of this checkout's stack, and the ports of its programs."""

from collections.abc import Iterator

import psutil

from penstock.infra.processes import ProcessManager
from penstock.platform.settings import Settings


def stack_manager(settings: Settings) -> ProcessManager:
    """Return the manager of the stack in the home folder, whether it runs or not."""
    return ProcessManager(settings.home / "run", settings.home / "logs")


def listening_ports(manager: ProcessManager) -> set[int]:
    """Return the ports on which the programs of a running stack listen."""
    return {port for pid in manager.list_pids().values() for port in _process_ports(pid)}


def _process_ports(pid: int) -> Iterator[int]:
    try:
        process = psutil.Process(pid)
        process_tree = [process, *process.children(recursive=True)]
        connections = [connection for member in process_tree for connection in member.net_connections("tcp")]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN:
            yield connection.laddr.port
