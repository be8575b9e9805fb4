"""Checks of the machine before the stack starts anything."""

from penstock.core.file_access import restrict_folder
from penstock.infra.errors import PortInUseError
from penstock.infra.java import find_java
from penstock.infra.ports import require_free_port
from penstock.infra.processes import ProcessManager
from penstock.platform.doctor.installation_checks import check_disk_space
from penstock.platform.errors import PortTakenError, RequirementError
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.settings.naming import variable_name
from penstock.platform.stack.manager import listening_ports

PORT_PURPOSES = {
    "kafka.port": "the broker",
    "kafka.controller_port": "the broker's controller",
    "host.metrics_port": "the stream host's metrics",
    "console.port": "the console",
    "dagster.port": "Dagster's webserver",
    "dagster.code_port": "Dagster's code server",
    "dagster.viewer_port": "the read-only webserver",
}
LOCAL_BROKER_PORTS = {"kafka.port", "kafka.controller_port"}


def check_machine(settings: Settings) -> None:
    """Refuse a start that would fail: no Java, too little disk space, or a home folder that is not writable."""
    find_java()
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        restrict_folder(settings.home, settings.file_access)
        (settings.home / "logs").mkdir(exist_ok=True)
    except OSError as error:
        raise RequirementError(
            f"{settings.home} cannot be created ({error.strerror}). Make its parent writable, or set PENSTOCK_HOME"
        ) from None
    check_disk_space(settings.home)


def check_ports(settings: Settings, manager: ProcessManager) -> None:
    """Refuse a start while another process uses one of the ports; ports of the running stack are allowed."""
    own_ports = listening_ports(manager)
    for name, port in settings.ports.items():
        is_needed = not (settings.kafka.bootstrap and name in LOCAL_BROKER_PORTS)
        if is_needed and port not in own_ports:
            _require_free_port(name, port)


def _require_free_port(name: str, port: int) -> None:
    try:
        require_free_port(LOOPBACK, port, PORT_PURPOSES[name])
    except PortInUseError as error:
        raise PortTakenError(f"{error} To use another port: {variable_name(name)}=PORT penstock up") from None
