"""What a start needs of the machine, looked at before anything is begun."""

from penstock.infra.errors import PortTakenError as TakenError
from penstock.infra.java import find_java
from penstock.infra.ports import require_free
from penstock.infra.processes import Manager
from penstock.platform.doctor.installed import disk_room
from penstock.platform.errors import PortTakenError, RequirementError
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.settings.names import variable
from penstock.platform.stack.manager import ports_held

PURPOSES = {
    "kafka.port": "the broker",
    "kafka.controller_port": "the broker's controller",
    "host.metrics_port": "the stream host's metrics",
    "dagster.port": "Dagster's webserver",
    "dagster.code_port": "Dagster's code server",
    "dagster.viewer_port": "the webserver that only shows",
}
LOCAL_BROKER = {"kafka.port", "kafka.controller_port"}


def check_machine(settings: Settings) -> None:
    """Refuse a start that would fail: no Java, no room on the disk, a home that cannot be written."""
    find_java()
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (settings.home / "logs").mkdir(exist_ok=True)
    except OSError as error:
        raise RequirementError(
            f"{settings.home} cannot be made ({error.strerror}): make it writable, or set PENSTOCK_HOME"
        ) from None
    disk_room(settings.home)


def check_ports(settings: Settings, manager: Manager) -> None:
    """Refuse a start while somebody else has one of the ports; those of the running stack are its own."""
    held = ports_held(manager)
    for name, port in settings.ports.items():
        needed = not (settings.kafka.bootstrap and name in LOCAL_BROKER)
        if needed and port not in held:
            _require_free(name, port)


def _require_free(name: str, port: int) -> None:
    try:
        require_free(LOOPBACK, port, PURPOSES[name])
    except TakenError as error:
        raise PortTakenError(f"{error} To set another: {variable(name)}=PORT penstock up") from None
