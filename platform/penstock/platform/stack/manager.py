"""The process manager of this checkout's stack, and the ports of its programs."""

from penstock.infra.processes import ProcessManager
from penstock.platform.security.open_sockets import list_open_sockets
from penstock.platform.settings import Settings


def stack_manager(settings: Settings) -> ProcessManager:
    """Return the manager of the stack in the home folder, whether it runs or not."""
    return ProcessManager(settings.home / "run", settings.home / "logs")


def listening_ports(manager: ProcessManager) -> set[int]:
    """Return the ports on which the programs of a running stack listen."""
    return {socket.port for pid in manager.list_pids().values() for socket in list_open_sockets(pid)}
